"""Convolutions, products of matrices, pools and reductions of TFLite: TFLite Micro's bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .one_operator import Network, Tensor, damage_each, network, same_bits
from .runtime_host import built

Draw = np.random.Generator
Family = Callable[[Draw], Network]
Types = tuple[str, str, str]

FEW, MANY = 6, 300
TYPES: tuple[Types, ...] = (
    ("int8", "int8", "int32"), ("int16", "int8", "int64"), ("int16", "int8", "int32"),
    ("float32", "float32", "float32"),
)  # fmt: skip
"""Of input, weights and bias."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), "gcc")


def data(draw: Draw, shape: Any, dtype: str) -> Tensor:
    zero = int(draw.integers(-128, 128)) if dtype == "int8" else 0
    scale = None if dtype == "float32" else float(np.float32(2 ** draw.uniform(-6, -2)))
    return tuple(int(extent) for extent in shape), dtype, scale, zero


def weights(draw: Draw, shape: Any, dtype: str, axis: int) -> Any:
    """Return constants, of one scale or of one for each channel."""
    if dtype == "float32":
        return draw.standard_normal(shape).astype(np.float32)
    held = draw.integers(-127, 128, shape).astype(dtype)
    count = shape[axis] if draw.random() < 0.6 else 1
    return held, (2 ** draw.uniform(-9, -5, count)).astype(np.float32), axis


def bias(draw: Draw, count: int, dtype: str) -> Any:
    if dtype == "float32":
        return draw.standard_normal(count).astype(np.float32)
    return draw.integers(-3000, 3000, count).astype(dtype)


def extent(size: int, taps: int, stride: int, dilation: int, padding: int) -> int:
    reached = (taps - 1) * dilation + 1
    return -(-size // stride) if padding == 0 else (size - reached) // stride + 1


def geometry(draw: Draw, *, dilates: bool = True) -> tuple[dict[str, int], Any, Any]:
    """Return options, extents of an image, and of a kernel."""
    strides, taps = draw.integers(1, 6, 2), draw.integers(1, 4, 2)
    dilations = draw.integers(1, 4, 2) if dilates else np.ones(2, int)
    image = (taps - 1) * dilations + 1 + draw.integers(0, 6, 2)
    fields = {
        "padding": int(draw.integers(2)),
        "stride_h": int(strides[0]),
        "stride_w": int(strides[1]),
        "fused_activation_function": int(draw.integers(4)),
    }
    if dilates:
        fields |= {"dilation_h_factor": int(dilations[0]), "dilation_w_factor": int(dilations[1])}
    return fields, image, taps


def sizes(fields: dict[str, int], image: Any, taps: Any) -> list[int]:
    return [
        extent(int(image[i]), int(taps[i]), fields[f"stride_{name}"],
               fields.get(f"dilation_{name}_factor", 1), fields["padding"])
        for i, name in enumerate("hw")
    ]  # fmt: skip


def convolution(draw: Draw) -> Network:
    types = TYPES[draw.integers(4)]
    fields, image, taps = geometry(draw)
    depth, groups = int(draw.integers(1, 5)), int(draw.integers(1, 3))
    count, batches = groups * int(draw.integers(1, 4)), int(draw.integers(1, 3))
    rows = [
        data(draw, (batches, *image, depth * groups), types[0]),
        weights(draw, (count, *taps, depth), types[1], 0),
        bias(draw, count, types[2]),
    ]
    target = data(draw, (batches, *sizes(fields, image, taps), count), types[0])
    return network("CONV_2D", rows[: draw.integers(2, 4)], [target], ("Conv2DOptions", fields))


def depthwise(draw: Draw) -> Network:
    types = TYPES[draw.integers(4)]
    fields, image, taps = geometry(draw)
    depth, times = int(draw.integers(1, 4)), int(draw.integers(1, 4))
    rows = [
        data(draw, (2, *image, depth), types[0]),
        weights(draw, (1, *taps, depth * times), types[1], 3),
        bias(draw, depth * times, types[2]),
    ]
    target = data(draw, (2, *sizes(fields, image, taps), depth * times), types[0])
    options = ("DepthwiseConv2DOptions", {**fields, "depth_multiplier": times})
    return network("DEPTHWISE_CONV_2D", rows, [target], options)


def transposed(draw: Draw) -> Network:
    types = TYPES[draw.integers(4)]
    fields, _, taps = geometry(draw, dilates=False)
    image = draw.integers(1, 5, 2)
    strides = (fields["stride_h"], fields["stride_w"])
    grown = [
        int(size * stride if fields["padding"] == 0 else (size - 1) * stride + tap)
        for size, stride, tap in zip(image, strides, taps, strict=True)
    ]
    depth, count = (int(number) for number in draw.integers(1, 5, 2))
    target = data(draw, (1, *grown, count), types[0])
    rows = [
        np.array(target[0], np.int32),
        weights(draw, (count, *taps, depth), types[1], 0),
        data(draw, (1, *image, depth), types[0]),
        bias(draw, count, types[2]),
    ]
    fields["fused_activation_function"] = 0
    return network("TRANSPOSE_CONV", rows[: draw.integers(3, 5)], [target],
                   ("TransposeConvOptions", fields))  # fmt: skip


def connected(draw: Draw) -> Network:
    types = TYPES[draw.integers(4)]
    depth, count, batches = (int(number) for number in draw.integers(1, 20, 3))
    rows: list[Any] = [
        data(draw, (batches, depth), types[0]),
        weights(draw, (count, depth), types[1], 0),
        bias(draw, count, types[2]),
    ]
    if types[0] != "float32":  # the host wants a bias of the right scale
        rows[2] = (rows[2], rows[0][2] * rows[1][1], 0)
    options = ("FullyConnectedOptions", {"fused_activation_function": int(draw.integers(4))})
    kept = rows if draw.random() < 0.7 else rows[:2]
    return network("FULLY_CONNECTED", kept, [data(draw, (batches, count), types[0])], options)


def product(draw: Draw) -> Network:
    dtype = str(draw.choice(["int8", "int16", "float32"]))
    height, depth, width = (int(number) for number in draw.integers(1, 7, 3))
    batches = tuple(draw.integers(1, 4, draw.integers(0, 3)).tolist())
    cut = [tuple(1 if draw.random() < 0.3 else n for n in batches) for _ in range(2)]
    both = tuple(map(max, *cut)) if batches else ()
    turned = [bool(flag) for flag in draw.integers(0, 2, 2)]
    one = (*cut[0], *((depth, height) if turned[0] else (height, depth)))
    other = (*cut[1], *((width, depth) if turned[1] else (depth, width)))
    return network("BATCH_MATMUL", [data(draw, one, dtype), data(draw, other, dtype)],
                   [data(draw, (*both, height, width), dtype)],
                   ("BatchMatMulOptions", {"adj_x": turned[0], "adj_y": turned[1]}))  # fmt: skip


def pool(kind: str) -> Family:
    def family(draw: Draw) -> Network:
        fields, image, taps = geometry(draw, dilates=False)
        dtype = str(draw.choice(["int8", "int16", "float32"]))
        depth = int(draw.integers(1, 4))
        row = data(draw, (2, *image, depth), dtype)
        target: Tensor = ((2, *sizes(fields, image, taps), depth), *row[1:])
        fields |= {"filter_height": int(taps[0]), "filter_width": int(taps[1])}
        return network(kind, [row], [target], ("Pool2DOptions", fields))

    return family


def reduction(kind: str, *kinds: str, same: bool = False) -> Family:
    def family(draw: Draw) -> Network:
        dtype = str(draw.choice(kinds))
        shape = draw.integers(1, 6, draw.integers(1, 5))
        axes = np.sort(draw.permutation(len(shape))[: draw.integers(1, len(shape) + 1)])
        keep = bool(draw.integers(2)) or len(axes) == len(shape)
        left = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
        row = data(draw, shape, dtype)
        if dtype == "bool":
            row: Tensor = (row[0], "bool", None, 0)
        target = data(draw, left, dtype)
        if same:
            target: Tensor = (target[0], row[1], row[2], row[3])
        return network(kind, [row, axes.astype(np.int32)], [target],
                       ("ReducerOptions", {"keep_dims": keep}))  # fmt: skip

    return family


FAMILIES: dict[str, Family] = {
    "convolution": convolution,
    "depthwise": depthwise,
    "transposed": transposed,
    "fully connected": connected,
    "matrices": product,
    "average pool": pool("AVERAGE_POOL_2D"),
    "max pool": pool("MAX_POOL_2D"),
    "sum": reduction("SUM", "int8", "int16", "float32"),
    "mean": reduction("MEAN", "int8", "int16", "float32"),
    "greatest": reduction("REDUCE_MAX", "int8", "float32", same=True),
    "least": reduction("REDUCE_MIN", "int8", "float32", same=True),
    "all": reduction("REDUCE_ALL", "bool", same=True),
}


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
