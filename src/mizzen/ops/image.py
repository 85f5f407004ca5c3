"""Image operators. Ref: TOSA 1.0, 2.12."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, ResizeMode, Value
from mizzen.ops.definition import (
    OUT,
    Attribute,
    RuleError,
    Shape,
    TosaOperation,
    known,
    shape,
    table,
    tensor,
)

TYPES = table(
    "in_t out_t @mode",
    """
    PRO-INT   i8   i32  bilinear
    PRO-INT   i8   i8   nearest
    EXT-INT16 i16  i48  bilinear
    EXT-INT16 i16  i16  nearest
    PRO-FP    f16  f16  bilinear
    PRO-FP    f16  f16  nearest
    EXT-BF16  bf16 bf16 bilinear
    EXT-BF16  bf16 bf16 nearest
    PRO-FP    f32  f32  bilinear
    PRO-FP    f32  f32  nearest
    """,
)
LARGEST = 16384
"""Sizes of images are less."""
NUMERATOR = 1 << 11
"""Greatest numerator of a scale."""


def resize(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,IH,IW,C], scale [y_n, y_d, x_n, x_d] -> [N,OH,OW,C]."""
    n, height, width, c = operands[0].type.shape
    scale = _numbers(operands[1], "scale", 4)
    offset = _numbers(operands[2], "offset", 2)
    border = _numbers(operands[3], "border", 2)
    new_height = _size(height, scale[:2], offset[0], border[0])
    new_width = _size(width, scale[2:], offset[1], border[1])
    return ((n, new_height, new_width, c),)


def _numbers(operand: Value, name: str, length: int) -> Shape:
    numbers = known(operand, name)
    if len(numbers) != length:
        raise RuleError(f"{name} must have {length} elements, and is {numbers}")
    return numbers


def _size(size: int, scale: Shape, offset: int, border: int) -> int:
    n, d = scale
    if not (0 < n <= NUMERATOR and 0 < d < 16 * n):
        raise RuleError(f"a scale must be at most {NUMERATOR} and more than 1/16, and is {n}/{d}")
    if not -n <= offset < 16 * n:
        raise RuleError(f"an offset must be from -scale to 16 * scale = {16 * n}, and is {offset}")
    if not -16 * n <= border < n:
        raise RuleError(f"a border must be from -16 * scale to scale = {n}, and is {border}")
    reach = (size - 1) * n - offset + border
    if reach < 0 or reach % d:
        raise RuleError(
            f"(size - 1) * scale_n - offset + border must be a multiple of scale_d, and is "
            f"{size - 1} * {n} - {offset} + {border} for {d}"
        )
    result = reach // d + 1
    if max(size, result) >= LARGEST:
        raise RuleError(f"sizes must be less than {LARGEST}, and are {size} and {result}")
    return result


class Resize(
    TosaOperation, kind="RESIZE", section="2.12.1", results=OUT, rows=TYPES, shapes=resize
):
    """An image of another size."""

    input = tensor("in_t", 4)
    scale = shape()
    offset = shape()
    border = shape()
    mode = Attribute(ResizeMode)
