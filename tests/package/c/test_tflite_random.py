"""Kernels of TFLite's operators on random shapes, scales and numbers: TensorFlow Lite Micro's bits.

A family is a function that draws a network of one operator. Numbers are drawn with the extremes of
their type among them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.export import c_container

from .one_operator import Network, Tensor, damage_each, network, same_bits
from .runtime_host import Host, built

Draw = np.random.Generator
Family = Callable[[Draw], Network]

FEW, MANY = 6, 300
ACTIVATIONS = 4
REAL = ("float32", None, 0)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), "gcc")


def scale(draw: Draw, low: float = -10, high: float = 2) -> float:
    return float(np.float32(2 ** draw.uniform(low, high)))


def typed(draw: Draw, *kinds: str) -> str:
    return str(draw.choice(kinds))


def tensor(
    draw: Draw, shape: tuple[int, ...], dtype: str, low: float = -10, high: float = 2
) -> Tensor:
    """Return a tensor of a type, quantised if its type is narrow."""
    if dtype in ("float32", "int32", "bool"):
        return shape, dtype, None, 0
    zero = int(draw.integers(-128, 128)) if dtype == "int8" else 0
    return shape, dtype, scale(draw, low, high), zero


def shapes(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return shapes of two inputs that broadcast, and of what they broadcast to."""
    full = tuple(draw.integers(1, 6, draw.integers(1, 5)).tolist())
    cut = [tuple(1 if draw.random() < 0.2 else n for n in full) for _ in range(2)]
    if draw.random() < 0.4:
        cut[1] = cut[1][draw.integers(0, len(full)) :]
    padded = [(1,) * (len(full) - len(row)) + row for row in cut]
    return cut[0], cut[1], tuple(map(max, *padded))


def pair(kind: str, options: str, *kinds: str, fused: bool = True) -> Family:
    def family(draw: Draw) -> Network:
        one, other, both = shapes(draw)
        dtype = typed(draw, *kinds)
        rows = [tensor(draw, one, dtype), tensor(draw, other, dtype)]
        fields = {"fused_activation_function": int(draw.integers(0, ACTIVATIONS))} if fused else {}
        return network(kind, rows, [tensor(draw, both, dtype, -8, 3)], (options, fields))

    return family


def comparison(kind: str, options: str) -> Family:
    def family(draw: Draw) -> Network:
        one, other, both = shapes(draw)
        dtype = typed(draw, "int8", "float32", "int32")
        rows = [tensor(draw, shape, dtype, -9, -0.1) for shape in (one, other)]
        return network(kind, rows, [(both, "bool", None, 0)], (options, {}))

    return family


def prelu(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 6, 4).tolist())
    dtype = typed(draw, "int8", "float32")
    slopes = (1, 1, shape[3])
    rows = [tensor(draw, shape, dtype, -8, 0), tensor(draw, slopes, dtype, -8, 0)]
    return network("PRELU", rows, [tensor(draw, shape, dtype, -8, 0)])


def one(kind: str, *kinds: str, options: str = "", low: float = -8, high: float = 0) -> Family:
    def family(draw: Draw) -> Network:
        dtype = typed(draw, *kinds)
        shape = tuple(draw.integers(1, 9, draw.integers(1, 5)).tolist())
        fields = {"alpha": float(draw.uniform(-1, 1))} if options else {}
        row = tensor(draw, shape, dtype, low, high)
        target = tensor(draw, shape, dtype, low, high)
        return network(kind, [row], [target], (options, fields) if options else None)

    return family


def squashed(kind: str, result: tuple[float, int]) -> Family:
    """LOGISTIC and TANH, whose output has one scale of each type."""

    def family(draw: Draw) -> Network:
        dtype = typed(draw, "int8", "int16")
        shape = tuple(draw.integers(1, 9, draw.integers(1, 4)).tolist())
        step, zero = result if dtype == "int8" else (2.0**-15, 0)
        row = tensor(draw, shape, dtype, -9, -1 if dtype == "int8" else -8)
        return network(kind, [row], [(shape, dtype, step, zero)])

    return family


def relu6(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 9, 2).tolist())
    row = (shape, "int8", 0.07, int(draw.integers(-128, 30)))
    return network("RELU6", [row], [row])


def i32(values: object) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def blocks(draw: Draw) -> Network:
    """SPACE_TO_BATCH_ND, and what comes back of it."""
    size, pads = draw.integers(1, 4, 2), draw.integers(0, 3, (2, 2))
    image = draw.integers(1, 5, 2)
    pads[:, 1] += -(image + pads.sum(1)) % size
    forth = draw.random() < 0.5
    if forth:  # the host pads with what lies in memory
        pads, image = np.zeros_like(pads), image * size
    n, c = (int(number) for number in draw.integers(1, 4, 2))
    padded = (image + pads.sum(1)) // size
    small = (n * int(size.prod()), *map(int, padded), c)
    large = (n, *map(int, image), c)
    dtype = typed(draw, "int8", "float32")
    step = tensor(draw, (), dtype)[2:]
    if forth:
        return network("SPACE_TO_BATCH_ND", [(large, dtype, *step), i32(size), i32(pads)],
                       [(small, dtype, *step)])  # fmt: skip
    return network("BATCH_TO_SPACE_ND", [(small, dtype, *step), i32(size), i32(pads)],
                   [(large, dtype, *step)])  # fmt: skip


def depth(kind: str, options: str) -> Family:
    def family(draw: Draw) -> Network:
        n, h, w, c = (int(number) for number in draw.integers(1, 4, 4))
        size = int(draw.integers(1, 4))
        large, small = (n, h * size, w * size, c), (n, h, w, c * size * size)
        dtype = typed(draw, "int8", "float32")
        step = tensor(draw, (), dtype)[2:]
        rows = (small, large) if kind == "DEPTH_TO_SPACE" else (large, small)
        fields = (options, {"block_size": size})
        return network(kind, [(rows[0], dtype, *step)], [(rows[1], dtype, *step)], fields)

    return family


def nearest(draw: Draw) -> Network:
    n, h, w, c = (int(number) for number in draw.integers(1, 7, 4))
    th, tw = (int(number) for number in draw.integers(1, 14, 2))
    dtype = typed(draw, "int8", "int16", "float32")
    step = tensor(draw, (), dtype)[2:]
    fields = {
        "align_corners": bool(draw.integers(2)),
        "half_pixel_centers": bool(draw.integers(2)),
    }
    return network("RESIZE_NEAREST_NEIGHBOR", [((n, h, w, c), dtype, *step), i32([th, tw])],
                   [((n, th, tw, c), dtype, *step)],
                   ("ResizeNearestNeighborOptions", fields))  # fmt: skip


def bilinear(draw: Draw) -> Network:
    n, h, w, c = (int(number) for number in draw.integers(1, 7, 4))
    th, tw = (int(number) for number in draw.integers(1, 14, 2))
    dtype = typed(draw, "int8", "float32")
    step = tensor(draw, (), dtype)[2:]
    choice = int(draw.integers(3))
    fields = {"align_corners": choice == 1, "half_pixel_centers": choice == 2}
    return network("RESIZE_BILINEAR", [((n, h, w, c), dtype, *step), i32([th, tw])],
                   [((n, th, tw, c), dtype, *step)], ("ResizeBilinearOptions", fields))  # fmt: skip


def softmax(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 20, draw.integers(1, 4)).tolist())
    kinds = (("int8", 1 / 256, "int8", -128), ("int8", 1 / 65536, "int16", -32768),
             ("int16", 1 / 32768, "int16", 0))  # fmt: skip
    dtype, step, result, zero = kinds[draw.integers(3)]
    low, high = (-9, 1) if dtype == "int8" else (-14, -5)
    fields = {"beta": float(draw.choice([1.0, 0.5, 2.0]))}
    return network("SOFTMAX", [tensor(draw, shape, dtype, low, high)],
                   [(shape, result, step, zero)], ("SoftmaxOptions", fields))  # fmt: skip


def powers(kind: str) -> Family:
    """LOGISTIC and TANH of 16 bits whose scale is a power of two, or close to one."""

    def family(draw: Draw) -> Network:
        step = float(2.0 ** draw.integers(-14, -9) * draw.choice([1, 1.0002, 1.002]))
        every = np.arange(-32768, 32768, dtype=np.int16)
        data, _ = network(kind, [((256, 256), "int16", step, 0)],
                          [((256, 256), "int16", 2.0**-15, 0)])  # fmt: skip
        return data, [every.reshape(256, 256)]

    return family


def mirrored(draw: Draw) -> Network:
    shape = draw.integers(2, 6, draw.integers(1, 4))
    mode = int(draw.integers(2))
    pads = np.array([draw.integers(0, extent + mode, 2) for extent in shape])
    target = tuple((shape + pads.sum(1)).tolist())
    step = tensor(draw, (), "int8")[2:]
    return network("MIRROR_PAD", [(tuple(shape.tolist()), "int8", *step), i32(pads)],
                   [(target, "int8", *step)], ("MirrorPadOptions", {"mode": mode}))  # fmt: skip


def reverse(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 6, 3).tolist())
    first = int(draw.integers(3))
    axes = i32(range(first, int(draw.integers(first, 3)) + 1))
    return network("REVERSE_V2", [(shape, "int8", 0.1, 0), axes], [(shape, "int8", 0.1, 0)])


def broadcast(draw: Draw) -> Network:
    one, _, both = shapes(draw)
    return network("BROADCAST_TO", [(one, "int8", 0.1, 0), i32(both)], [(both, "int8", 0.1, 0)])


def split_v(draw: Draw) -> Network:
    sizes = draw.integers(1, 4, draw.integers(1, 4))
    other = int(draw.integers(1, 4))
    parts = [((other, int(size)), "int8", 0.1, 0) for size in sizes]
    whole = ((other, int(sizes.sum())), "int8", 0.1, 0)
    return network("SPLIT_V", [whole, i32(sizes), i32(-1)], parts,
                   ("SplitVOptions", {"num_splits": len(parts)}))  # fmt: skip


def shape_of(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 6, 3).tolist())
    return network("SHAPE", [(shape, "int8", 0.1, 0)], [((3,), "int32", None, 0)])


def added_up(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 6, 3).tolist())
    rows = [(shape, *REAL)] * int(draw.integers(2, 5))
    return network("ADD_N", rows, [(shape, *REAL)])


def floor_divided(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 6, 3).tolist())
    divisors = draw.uniform(0.1, 3, shape[2:]).astype(np.float32) * draw.choice([-1, 1])
    row = (shape, *REAL)
    return network("FLOOR_DIV", [row, divisors.astype(np.float32)], [row], ("FloorDivOptions", {}))


def gathered(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 5, draw.integers(1, 5)).tolist())
    axis = int(draw.integers(len(shape)))
    batches = int(draw.integers(axis + 1))
    own = tuple(draw.integers(1, 4, draw.integers(1, 3)).tolist())
    places = i32(draw.integers(0, shape[axis], (*shape[:batches], *own)))
    target = (*shape[:axis], *own, *shape[axis + 1 :])
    return network("GATHER", [(shape, "int8", 0.1, 0), places], [(target, "int8", 0.1, 0)],
                   ("GatherOptions", {"axis": axis, "batch_dims": batches}))  # fmt: skip


def gathered_nd(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 5, draw.integers(1, 5)).tolist())
    count = int(draw.integers(1, len(shape) + 1))
    own = tuple(draw.integers(1, 4, draw.integers(1, 3)).tolist())
    places = i32(draw.integers(0, shape[:count], (*own, count)))
    target = (*own, *shape[count:])
    return network("GATHER_ND", [(shape, "int8", 0.1, 0), places], [(target, "int8", 0.1, 0)])


def embedded(draw: Draw) -> Network:
    size, width, count = (int(number) for number in draw.integers(1, 7, 3))
    table = draw.standard_normal((size, width)).astype(np.float32)
    return network("EMBEDDING_LOOKUP", [i32(draw.integers(0, size, count)), table],
                   [((count, width), *REAL)])  # fmt: skip


def updated(draw: Draw) -> Network:
    shape = draw.integers(1, 6, 3)
    part = draw.integers(1, shape + 1)
    rows = [(tuple(row.tolist()), "int8", 0.1, 0) for row in (shape, part)]
    return network("DYNAMIC_UPDATE_SLICE", [*rows, i32(draw.integers(0, 5, 3))], rows[:1])


def unit_length(draw: Draw) -> Network:
    shape = tuple(draw.integers(1, 30, draw.integers(1, 4)).tolist())
    dtype = typed(draw, "int8", "float32")
    target = (shape, "int8", 1 / 128, 0) if dtype == "int8" else (shape, *REAL)
    return network("L2_NORMALIZATION", [tensor(draw, shape, dtype)], [target],
                   ("L2NormOptions", {}))  # fmt: skip


FAMILIES: dict[str, Family] = {
    "add": pair("ADD", "AddOptions", "int8", "int16", "float32", "int32"),
    "subtract": pair("SUB", "SubOptions", "int8", "int16", "float32", "int32"),
    "multiply": pair("MUL", "MulOptions", "int8", "int16", "float32", "int32"),
    "divide": pair("DIV", "DivOptions", "float32"),
    "squared difference": pair(
        "SQUARED_DIFFERENCE", "SquaredDifferenceOptions", "int8", "int16", "float32", fused=False
    ),
    "minimum": pair("MINIMUM", "MaximumMinimumOptions", "float32", "int32", fused=False),
    "maximum": pair("MAXIMUM", "MaximumMinimumOptions", "float32", "int32", fused=False),
    "and": pair("LOGICAL_AND", "LogicalAndOptions", "bool", fused=False),
    "or": pair("LOGICAL_OR", "LogicalOrOptions", "bool", fused=False),
    "equal": comparison("EQUAL", "EqualOptions"),
    "not equal": comparison("NOT_EQUAL", "NotEqualOptions"),
    "less": comparison("LESS", "LessOptions"),
    "less or equal": comparison("LESS_EQUAL", "LessEqualOptions"),
    "greater": comparison("GREATER", "GreaterOptions"),
    "greater or equal": comparison("GREATER_EQUAL", "GreaterEqualOptions"),
    "prelu": prelu,
    "logistic": squashed("LOGISTIC", (1 / 256, -128)),
    "tanh": squashed("TANH", (1 / 128, 0)),
    "logistic of every number": powers("LOGISTIC"),
    "tanh of every number": powers("TANH"),
    "softmax": softmax,
    "bilinear": bilinear,
    "relu": one("RELU", "int8", "float32"),
    "relu6": relu6,
    "leaky relu": one("LEAKY_RELU", "int8", "int16", "float32", options="LeakyReluOptions"),
    "hard swish": one("HARD_SWISH", "int8", "float32", low=-6, high=-2),
    "elu": one("ELU", "int8", low=-6, high=-2),
    "absolute": one("ABS", "int8", "float32"),
    "negated": one("NEG", "float32"),
    "square": one("SQUARE", "float32"),
    "floor": one("FLOOR", "float32"),
    "ceiling": one("CEIL", "float32"),
    "round": one("ROUND", "float32"),
    "square root": one("SQRT", "float32"),
    "not": one("LOGICAL_NOT", "bool"),
    "blocks": blocks,
    "depth to space": depth("DEPTH_TO_SPACE", "DepthToSpaceOptions"),
    "space to depth": depth("SPACE_TO_DEPTH", "SpaceToDepthOptions"),
    "nearest": nearest,
    "mirror pad": mirrored,
    "reverse": reverse,
    "broadcast": broadcast,
    "split v": split_v,
    "shape": shape_of,
    "add n": added_up,
    "floor divide": floor_divided,
    "gather": gathered,
    "gather nd": gathered_nd,
    "embedding": embedded,
    "update": updated,
    "unit length": unit_length,
}


def test_blocks_are_padded_with_zero(program: Path, tmp_path: Path) -> None:
    pads = i32([[1, 1], [0, 1]])
    x = ((1, 2, 3, 1), "int8", 0.1, -18)
    data, (image,) = network(
        "SPACE_TO_BATCH_ND", [x, i32([2, 2]), pads], [((4, 2, 2, 1), "int8", 0.1, -18)]
    )
    file = tmp_path / "network.tflite"
    file.write_bytes(data)
    padded = np.pad(image[0, :, :, 0], pads, constant_values=-18)
    expected = padded.reshape(2, 2, 2, 2).transpose(1, 3, 0, 2)
    with Host(program, c_container(mizzen.load(file)).data) as host:
        assert host.run(image) == [expected.tobytes()]


def compared(program: Path, family: Family, folder: Path, times: int) -> None:
    for seed in range(times):
        same_bits(program, family(np.random.default_rng(seed)), folder)


@pytest.mark.parametrize("name", FAMILIES)
def test_few_of_each_family(program: Path, name: str, tmp_path: Path) -> None:
    compared(program, FAMILIES[name], tmp_path, FEW)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FAMILIES)
def test_many_of_each_family(program: Path, name: str, tmp_path: Path) -> None:
    compared(program, FAMILIES[name], tmp_path, MANY)


def test_kernels_of_damaged_containers_stay_inside(tmp_path: Path) -> None:
    damage_each(FAMILIES.values(), tmp_path, 60)


@pytest.mark.sweep
def test_kernels_of_many_damaged_containers_stay_inside(tmp_path: Path) -> None:
    damage_each(FAMILIES.values(), tmp_path, 1500)
