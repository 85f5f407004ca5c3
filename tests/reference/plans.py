"""Shapes and attributes of operations to try: for every kind, all that TOSA allows, small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from mizzen.graph import NanMode, RoundingMode
from mizzen.ops import DEFINITIONS, Row

Draw = Callable[[st.SearchStrategy[Any]], Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What an operation is made of besides numbers.

    shapes      of the operands that are tensors and not constant
    values      elements of the operands that are shapes, by name
    attributes  all that have no default, and others to try
    terms       how many products or numbers are added up at most
    """

    shapes: tuple[Shape, ...]
    values: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    terms: int = 1


MAX_SCALE = 256
"""Greatest scale of RESIZE. Ref: TOSA 1.0, 1.7 Levels, 8K."""

SIZE = st.integers(1, 5)
SHAPE = st.lists(SIZE, min_size=1, max_size=4).map(tuple)
ANY_SHAPE = st.lists(SIZE, min_size=0, max_size=5).map(tuple)
NAN_MODE = st.sampled_from(NanMode)


def numbers(draw: Draw, low: int, high: int, count: int) -> Shape:
    return tuple(draw(st.integers(low, high)) for _ in range(count))


def elementwise(draw: Draw, row: Row, kind: str) -> Plan:
    """Operands of one rank that broadcast; attributes where the operation has some."""
    tensors = [operand for operand in DEFINITIONS[kind].operands if not operand.constant]
    whole: Shape = draw(ANY_SHAPE)
    shapes = [
        tuple(1 if len(tensors) > 1 and draw(st.integers(0, 3)) == 0 else size for size in whole)
        for _ in tensors
    ]
    attributes: dict[str, Any] = {}
    if kind in ("MAXIMUM", "MINIMUM"):
        attributes["nan_mode"] = draw(NAN_MODE)
    if kind == "ARITHMETIC_RIGHT_SHIFT":
        attributes["round"] = draw(st.booleans())
    return Plan(tuple(shapes), attributes=attributes)


def clamp(draw: Draw, row: Row, kind: str) -> Plan:
    low, high = sorted(numbers(draw, -128, 127, 2))
    bounds = {"min_val": low, "max_val": high, "nan_mode": draw(NAN_MODE)}
    return Plan((draw(ANY_SHAPE),), attributes=bounds)


def along_axis(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(SHAPE)
    axis = draw(st.integers(0, len(shape) - 1))
    attributes: dict[str, Any] = {"axis": axis}
    if kind in ("ARGMAX", "REDUCE_MAX", "REDUCE_MIN"):
        attributes["nan_mode"] = draw(NAN_MODE)
    return Plan((shape,), attributes=attributes, terms=shape[axis])


def window(draw: Draw, sizes: Shape, dimensions: int, *, dilated: bool) -> dict[str, Any]:
    """Return stride, pad, dilation; `sizes` are the kernel's. TOSA wants the stride to fit."""
    stride = numbers(draw, 1, 3, dimensions)
    dilation = numbers(draw, 1, 2, dimensions) if dilated else (1,) * dimensions
    most = [size if dilated else size - 1 for size in sizes]
    pad = tuple(draw(st.integers(0, most[index // 2])) for index in range(2 * dimensions))
    attributes: dict[str, Any] = {"stride": stride, "pad": pad}
    return attributes | ({"dilation": dilation} if dilated else {})


def image(draw: Draw, kernel: Shape, attributes: Mapping[str, Any]) -> Shape:
    """Return sizes of images that the windows cover without rest."""
    sizes: list[int] = []
    for index, reach in enumerate(kernel):
        places = draw(st.integers(1, 4)) - 1
        dilation = attributes.get("dilation", (1,) * len(kernel))[index]
        before, after = attributes["pad"][2 * index : 2 * index + 2]
        size = places * attributes["stride"][index] + (reach - 1) * dilation + 1 - before - after
        assume(size >= 1)
        sizes.append(size)
    return tuple(sizes)


def convolution(draw: Draw, row: Row, kind: str) -> Plan:
    dimensions = 3 if kind == "CONV3D" else 2
    kernel = numbers(draw, 1, 3, dimensions)
    n, c, oc = draw(st.integers(1, 2)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    attributes = window(draw, kernel, dimensions, dilated=True)
    space = image(draw, kernel, attributes)
    if kind == "DEPTHWISE_CONV2D":
        weight, channels, terms = (*kernel, c, oc), c * oc, prod(kernel)
    else:
        weight, channels, terms = (oc, *kernel, c), oc, prod(kernel) * c
    bias = (draw(st.sampled_from([1, channels])),)
    return Plan(((n, *space, c), weight, bias), attributes=attributes, terms=terms + 1)


def transpose_convolution(draw: Draw, row: Row, kind: str) -> Plan:
    kernel = numbers(draw, 1, 4, 2)
    n, c, oc = draw(st.integers(1, 2)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    space, stride = numbers(draw, 1, 4, 2), numbers(draw, 1, 3, 2)
    pad = tuple(draw(st.integers(1 - kernel[index // 2], 3)) for index in range(4))
    for index in range(2):
        size = (space[index] - 1) * stride[index] + kernel[index] + sum(pad[2 * index :][:2])
        assume(size >= 1)
    shapes = ((n, *space, c), (oc, *kernel, c), (draw(st.sampled_from([1, oc])),))
    return Plan(shapes, attributes={"out_pad": pad, "stride": stride}, terms=prod(kernel) * c + 1)


def pool(draw: Draw, row: Row, kind: str) -> Plan:
    kernel = numbers(draw, 1, 4, 2)
    attributes = {"kernel": kernel, **window(draw, kernel, 2, dilated=False)}
    space = image(draw, kernel, attributes)
    if kind == "MAX_POOL2D":
        attributes["nan_mode"] = draw(NAN_MODE)
    shape = (draw(st.integers(1, 2)), *space, draw(st.integers(1, 4)))
    return Plan((shape,), attributes=attributes, terms=prod(kernel))


def matmul(draw: Draw, row: Row, kind: str) -> Plan:
    n, h, c, w = numbers(draw, 1, 5, 4)
    return Plan(((n, h, c), (n, c, w)), terms=c)


def fourier(draw: Draw, row: Row, kind: str) -> Plan:
    n, h, w = draw(st.integers(1, 2)), *(1 << each for each in numbers(draw, 0, 3, 2))
    attributes = {"inverse": draw(st.booleans())} if kind == "FFT2D" else {}
    return Plan(((n, h, w),) * (1 + bool(attributes)), attributes=attributes, terms=2 * h * w)


def concat(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(SHAPE)
    axis = draw(st.integers(0, len(shape) - 1))
    parts = tuple(
        (*shape[:axis], draw(SIZE), *shape[axis + 1 :]) for _ in range(draw(st.integers(1, 3)))
    )
    return Plan(parts, attributes={"axis": axis})


def pad(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(SHAPE)
    return Plan((shape,), {"padding": numbers(draw, 0, 3, 2 * len(shape))})


def reshape(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(ANY_SHAPE)
    fold = draw(st.integers(0, len(shape)))
    new = (*shape[:fold], prod(shape[fold:])) if draw(st.booleans()) else (*shape[::-1], 1)
    return Plan((shape,), {"shape": new})


def slice_(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(SHAPE)
    start = tuple(draw(st.integers(0, size - 1)) for size in shape)
    size = tuple(draw(st.integers(1, n - first)) for n, first in zip(shape, start, strict=True))
    return Plan((shape,), {"start": start, "size": size})


def tile(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(SHAPE)
    return Plan((shape,), {"multiples": numbers(draw, 1, 3, len(shape))})


def transpose(draw: Draw, row: Row, kind: str) -> Plan:
    shape = draw(SHAPE)
    perms = tuple(draw(st.permutations(range(len(shape)))))
    return Plan((shape,), attributes={"perms": perms})


def gather(draw: Draw, row: Row, kind: str) -> Plan:
    n, k, c, w = numbers(draw, 1, 5, 4)
    return Plan(((n, k, c), (n, w)))


def scatter(draw: Draw, row: Row, kind: str) -> Plan:
    n, k, c = numbers(draw, 1, 5, 3)
    w = draw(st.integers(1, k))
    return Plan(((n, k, c), (n, w), (n, w, c)))


def resize(draw: Draw, row: Row, kind: str) -> Plan:
    scale, offset, border, sizes = [], [], [], []
    for _ in range(2):
        n = draw(st.sampled_from([1, 2, 3, 4, 6, 7, 16, 1024, 2048]))
        d = draw(st.integers(-(-n // MAX_SCALE), 16 * n - 1))
        size = draw(SIZE)
        first = draw(st.integers(-n, size * n - 1))
        places = draw(st.integers(1, min(8, 1 + (size * n - first - 1) // d)))
        last = (places - 1) * d + first - (size - 1) * n
        scale += [n, d]
        offset, border, sizes = [*offset, first], [*border, last], [*sizes, size]
    shape = (draw(st.integers(1, 2)), *sizes, draw(SIZE))
    values = {"scale": tuple(scale), "offset": tuple(offset), "border": tuple(border)}
    return Plan((shape,), values, terms=4)


def rescale(draw: Draw, row: Row, kind: str) -> Plan:
    """Unsigned only where TOSA has it: i8 and i16, not on both sides."""
    scale32 = row.types["mul_t"].value == "i32"
    # INEXACT_ROUND is not asked of the model, which truncates then, beyond the bound of TOSA.
    modes = [RoundingMode.SINGLE_ROUND, *[RoundingMode.DOUBLE_ROUND] * scale32]
    attributes: dict[str, Any] = {
        "scale32": scale32,
        "rounding_mode": draw(st.sampled_from(modes)),
        "per_channel": draw(st.booleans()),
    }
    if {row.types["in_t"].value, row.types["out_t"].value} <= {"i8", "i16"}:
        unsigned = draw(st.sampled_from([None, "input_unsigned", "output_unsigned"]))
        attributes |= {unsigned: True} if unsigned else {}
    return Plan((draw(SHAPE if attributes["per_channel"] else ANY_SHAPE),), attributes=attributes)


PLANS: dict[str, Callable[[Draw, Row, str], Plan]] = {
    "ARGMAX": along_axis,
    "AVG_POOL2D": pool,
    "CLAMP": clamp,
    "CONCAT": concat,
    "CONV2D": convolution,
    "CONV3D": convolution,
    "DEPTHWISE_CONV2D": convolution,
    "FFT2D": fourier,
    "GATHER": gather,
    "MATMUL": matmul,
    "MAX_POOL2D": pool,
    "PAD": pad,
    "RESCALE": rescale,
    "RESHAPE": reshape,
    "RESIZE": resize,
    "REVERSE": along_axis,
    "RFFT2D": fourier,
    "SCATTER": scatter,
    "SLICE": slice_,
    "TILE": tile,
    "TRANSPOSE": transpose,
    "TRANSPOSE_CONV2D": transpose_convolution,
} | {kind: along_axis for kind in DEFINITIONS if kind.startswith("REDUCE_")}
"""Kinds that are not here work element by element."""
