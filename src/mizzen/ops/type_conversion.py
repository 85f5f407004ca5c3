"""Type conversion. Ref: TOSA 1.0, 2.13."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, DType, RoundingMode, Value
from mizzen.ops.definition import (
    OUT,
    Attribute,
    Row,
    RuleError,
    Shape,
    TosaOperation,
    constant,
    same,
    table,
    tensor,
)


def rescale(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the first operand's shape; one multiplier and shift, or one for each channel."""
    shape = operands[0].type.shape
    per_channel, scale32 = attributes["per_channel"], attributes["scale32"]
    if per_channel and not shape:
        raise RuleError("a value with a scale for each channel must have channels, and has rank 0")
    channels = shape[-1] if per_channel else 1
    for operand, name in ((operands[1], "multiplier"), (operands[2], "shift")):
        if operand.type.shape[0] != channels:
            raise RuleError(f"{name} must have {channels} elements, not {operand.type.shape[0]}")
    if scale32 is not (operands[1].type.dtype is DType.INT32):
        raise RuleError("multiplier must be i32 if scale32 is set, else i16")
    if scale32 and operands[0].type.dtype is DType.INT48:
        raise RuleError("scale32 must not be set for i48")
    if not scale32 and attributes["rounding_mode"] is RoundingMode.DOUBLE_ROUND:
        raise RuleError("double rounding must not be without scale32")
    _signs(operands[0].type.dtype, operands[4].type.dtype, attributes)
    return (shape,)


UNSIGNED = (DType.INT8, DType.INT16)


def _signs(source: DType, target: DType, attributes: Attributes) -> None:
    before, after = attributes["input_unsigned"], attributes["output_unsigned"]
    if before and after:
        raise RuleError("input and output must not both be unsigned")
    if (before or after) and (source not in UNSIGNED or target not in UNSIGNED):
        types = f"{source.value} and {target.value}"
        raise RuleError(f"only i8 and i16 can be taken as unsigned, and the types are {types}")


def _rescale_rows() -> tuple[Row, ...]:
    return tuple(
        form
        for multiplier in ("i32", "i16")
        for form in table(
            "in_t out_t mul_t",
            "\n".join(
                f"{'EXT-INT16' if source == 'i48' else 'PRO-INT'} {source} {target} {multiplier}"
                for source in ("i8", "i16", "i32", "i48")
                for target in ("i8", "i16", "i32")
                if (source, multiplier) != ("i48", "i32")
            ),
        )
    )


CASTS = table(
    "in_t out_t",
    """
    PRO-INT  bool i8
    PRO-INT  bool i16
    PRO-INT  bool i32
    PRO-INT  i8   bool
    PRO-INT  i8   i16
    PRO-INT  i8   i32
    PRO-FP   i8   f16
    EXT-BF16 i8   bf16
    PRO-FP   i8   f32
    PRO-INT  i16  bool
    PRO-INT  i16  i8
    PRO-INT  i16  i32
    PRO-FP   i16  f16
    EXT-BF16 i16  bf16
    PRO-FP   i16  f32
    PRO-INT  i32  bool
    PRO-INT  i32  i8
    PRO-INT  i32  i16
    PRO-FP   i32  f16
    EXT-BF16 i32  bf16
    PRO-FP   i32  f32
    EXT-BF16 bf16 i8
    EXT-BF16 bf16 i16
    EXT-BF16 bf16 i32
    EXT-BF16 bf16 f32
    PRO-FP   f16  i8
    PRO-FP   f16  i16
    PRO-FP   f16  i32
    PRO-FP   f16  f32
    PRO-FP   f32  i8
    PRO-FP   f32  i16
    PRO-FP   f32  i32
    EXT-BF16 f32  bf16
    PRO-FP   f32  f16
    """,
)


class Cast(TosaOperation, kind="CAST", section="2.13.1", results=OUT, rows=CASTS, shapes=same):
    """The numbers in another type."""

    input = tensor("in_t")


class Rescale(
    TosaOperation,
    kind="RESCALE",
    section="2.13.2",
    results=OUT,
    rows=_rescale_rows(),
    shapes=rescale,
):
    """Integers times multiplier / 2**shift, between zero points."""

    input = tensor("in_t")
    multiplier = constant("mul_t")
    shift = constant("i8")
    input_zp = constant("in_t")
    output_zp = constant("out_t")
    scale32 = Attribute(bool)
    rounding_mode = Attribute(RoundingMode)
    per_channel = Attribute(bool)
    input_unsigned = Attribute(bool, False)
    output_unsigned = Attribute(bool, False)
