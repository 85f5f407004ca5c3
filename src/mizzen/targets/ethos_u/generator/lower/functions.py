"""What is computed of one integer of 8 bits, however many operations do it: a table has it.

A graph brings an integer to 32 bits, multiplies it with a constant, or adds one, and brings it
back: a scale that quantisation left over, or the small number below a root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Operation, Value, integer_range
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Reshape
from mizzen.ops.elementwise import Add, Maximum, Minimum, Mul, Sub
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.generator.lower.refusing import NoFormError, need
from mizzen.targets.ethos_u.generator.lower.scaling import number, rescaled

Int64 = npt.NDArray[np.int64]

ARITHMETIC = (Add, Sub, Mul, Maximum, Minimum)
"""What combines an integer with a constant."""

STEPS = (Rescale, Reshape, Identity, *ARITHMETIC)


def function_behind(value: Value, outputs: Sequence[Value]) -> list[Operation]:
    """Return the operations, first one first, that make 8 bits of one integer of 8 bits.

    None of them if what is computed depends on more, or others read what is between, or a constant
    makes several of each integer.
    """
    if value.dtype is not DType.INT8:
        return []
    found: list[Operation] = []
    elements = value.type.elements
    while not found or value.dtype is not DType.INT8:
        operation = value.producer
        alone = not found or (sum(value.uses.values()) == 1 and value not in outputs)
        if not isinstance(operation, STEPS) or not alone:
            return []
        found.append(operation)
        value = given(operation)
        if value.constant is not None or value.type.elements != elements:
            return []
    if not any(isinstance(row, ARITHMETIC) for row in found):
        return []
    return found[::-1] if _has_values(found[::-1]) else []


def given(operation: Operation) -> Value:
    """Return the operand that is no constant; the first one if none or both are."""
    operands = operation.operands[:2] if isinstance(operation, ARITHMETIC) else ()
    computed = [value for value in operands if _constant(value) is None]
    return computed[0] if len(computed) == 1 else operation.operand


def _has_values(steps: Sequence[Operation]) -> bool:
    try:
        values_of(steps, np.arange(-128, 128, dtype=np.int64))
    except NoFormError:
        return False
    return True


def values_of(steps: Sequence[Operation], values: Int64) -> Int64:
    """Return what operations one after the other make of integers; refused where they overflow."""
    low, high = integer_range(DType.INT32)
    for step in steps:
        values = _value_of(step, values)
        need(bool(low <= values.min() <= values.max() <= high), "its sums have more than 32 bits")
    return values


def _value_of(step: Operation, values: Int64) -> Int64:
    match step:
        case Rescale():
            return rescaled(step, values)
        case Reshape() | Identity():
            return values
        case _:
            return _combined(step, values)


def _combined(step: Operation, values: Int64) -> Int64:
    first, second = (_constant(value) for value in step.operands[:2])
    need((first is None) != (second is None), "it combines two values")
    one = values if first is None else np.full_like(values, first)
    other = values if second is None else np.full_like(values, second)
    match step:
        case Mul():
            need(number(step.shift) == 0, "its product is shifted")
            return one * other
        case Add():
            return one + other
        case Sub():
            return one - other
        case Maximum():
            return np.maximum(one, other)
        case _:
            return np.minimum(one, other)


def _constant(value: Value) -> int | None:
    """Return the number that all elements of a constant are, scaled or not; None of others."""
    producer = value.producer
    if isinstance(producer, Rescale):
        inner = _constant(producer.input)
        if inner is None:
            return None
        try:
            return int(rescaled(producer, np.array([inner], np.int64))[0])
        except NoFormError:
            return None
    if isinstance(producer, Reshape | Identity):
        return _constant(producer.operand)
    if value.constant is None or value.constant.size == 0 or not value.dtype.is_integer:
        return None
    numbers = value.constant.reshape(-1)
    return int(numbers[0]) if (numbers == numbers[0]).all() else None
