"""What must hold of the values of constant operands.

Ref: TOSA 1.0, 2.3.2 to 2.3.10, 2.5.14, 2.6.10, 2.13.2; scale helpers of its pseudocode.
"""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.graph import DType, Operation, Value

ZERO_POINTS: dict[str, tuple[tuple[int, str], ...]] = {
    "AVG_POOL2D": ((1, "input_zp"), (2, "output_zp")),
    "CONV2D": ((3, "input_zp"), (4, "weight_zp")),
    "CONV3D": ((3, "input_zp"), (4, "weight_zp")),
    "DEPTHWISE_CONV2D": ((3, "input_zp"), (4, "weight_zp")),
    "MATMUL": ((2, "A_zp"), (3, "B_zp")),
    "NEGATE": ((1, "input1_zp"), (2, "output_zp")),
    "RESCALE": ((3, "input_zp"), (4, "output_zp")),
    "TRANSPOSE_CONV2D": ((3, "input_zp"), (4, "weight_zp")),
}
"""The operands that are zero points, by place and name."""

UNSIGNED_ZERO_POINTS = (0, -32768)
"""Of 16-bit elements that are taken as unsigned; as int16, where 32768 is -32768."""
SCALE_SHIFTS = range(2, 63)
MUL_SHIFTS = range(64)


def constants(operation: Operation) -> Iterator[str]:
    """Say what does not hold of the constant operands: what must, and what came."""
    for index, name in ZERO_POINTS.get(operation.kind, ()):
        yield from _zero_point(operation, operation.operands[index], name)
    if operation.kind == "MUL":
        yield from _mul(operation)
    elif operation.kind == "RESCALE":
        yield from _rescale(operation)


def _zero_point(operation: Operation, operand: Value, name: str) -> Iterator[str]:
    if operand.dtype is DType.INT8:
        return
    zero_point = _values(operand)[0]
    unsigned = operation.attributes.get(name.replace("_zp", "_unsigned"), False)
    if unsigned and operand.dtype is DType.INT16:
        if zero_point not in UNSIGNED_ZERO_POINTS:
            yield f"{name} of unsigned i16 must be 0 or 32768, and is {int(zero_point) & 0xFFFF}"
    elif zero_point != 0:
        yield f"{name} must be 0 for {operand.dtype.value}, and is {zero_point}"


def _mul(operation: Operation) -> Iterator[str]:
    shift = _values(operation.operands[2])[0]
    dtype = operation.operands[0].dtype
    if shift not in MUL_SHIFTS:
        yield f"shift must be from 0 to 63, and is {shift}"
    elif shift and dtype is not DType.INT32:
        yield f"shift must be 0 for {dtype.value}, and is {shift}"


def _rescale(operation: Operation) -> Iterator[str]:
    multipliers, shifts = map(_values, operation.operands[1:3])
    if min(multipliers) < 0:
        yield f"multipliers must not be negative, and one is {min(multipliers)}"
    wrong = [shift for shift in shifts if shift not in SCALE_SHIFTS]
    if wrong:
        yield f"shifts must be from 2 to 62, and one is {wrong[0]}"


def _values(operand: Value) -> list[int]:
    array = operand.constant
    assert array is not None
    return array.tolist()
