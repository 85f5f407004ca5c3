"""Hold tables to the functions of the graph: entry by entry, for every index there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Operation, Value
from mizzen.ops.control_flow import Custom, Identity
from mizzen.ops.data_layout import Reshape, Reverse, Slice, Transpose
from mizzen.ops.elementwise import Add, Clamp, Maximum, Minimum, Mul, Sub, Table
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.reference import apply
from mizzen.targets.ethos_u.judge.witness import SaidOperation

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

MOVES = (Identity, Reshape, Reverse, Slice, Transpose)
"""Operations that make no other numbers."""
ARITHMETIC = (Add, Maximum, Minimum, Mul, Sub)
"""Operations whose results depend on one number each, where the other operand is one number."""
FUNCTIONS = (Cast, Clamp, Rescale, Table, *ARITHMETIC)
"""Operations whose results depend on one number of their operand each."""

ENTRIES = 256
SEGMENTS = 512
UPPER_BIT = np.uint8(0x80)

Exponentials = Callable[[Operation], Iterator[Array]]
"""Tables of exponentials that an operation may look up, int32."""


def expected_tables(
    said: SaidOperation, operation: Operation, exponentials: Exponentials
) -> Iterator[Bytes]:
    """Yield the tables that what was made for an operation of the graph may have.

    They are of its own function, and of those of operations before and after it that may be done in
    the same.
    """
    if isinstance(operation, Custom):
        for entries in exponentials(operation):
            yield np.ascontiguousarray(entries).view(np.uint8)
        return
    for path in _paths(operation):
        for table in _of_path(path):
            yield table
            if said.ofm.dtype.itemsize == 1:
                yield table ^ UPPER_BIT


MOST_NUMBERS = 1 << 12
"""Of a constant that is computed to see whether it is one number."""
MOST_STEPS = 6
"""Operations of a path, on each side of the one in its middle."""


def _paths(operation: Operation) -> Iterator[list[Operation]]:
    """Yield the paths through an operation of operations that compute of one value each."""
    backward: list[Operation] = []
    first = operation
    while len(backward) < MOST_STEPS and isinstance(first, (*MOVES, *FUNCTIONS)):
        made = _given(first).producer
        if made is None or made.kind in ("CONST", "CONST_SHAPE"):
            break
        backward.append(made)
        first = made
    start = [*reversed(backward), operation]
    waiting = [start]
    while waiting:
        path = waiting.pop()
        yield path
        if len(path) < len(start) + MOST_STEPS:
            for result in path[-1].results:
                users = (user for user in result.uses if _is_alone(user, result))
                waiting += [
                    [*path, user] for user in users if isinstance(user, (*MOVES, *FUNCTIONS))
                ]


def _of_path(path: list[Operation]) -> Iterator[Bytes]:
    """Yield the functions from each value of a path in 8 bits to those after it."""
    for start, operation in enumerate(path):
        if isinstance(operation, FUNCTIONS):
            yield from _segments(operation)
            yield from _entries(path[start:])


def _entries(path: list[Operation]) -> Iterator[Bytes]:
    if _given(path[0]).dtype is not DType.INT8:
        return
    numbers: Array = np.arange(-128, 128).astype(np.int8)
    for operation in path:
        if isinstance(operation, MOVES):
            continue
        results = _applied(operation, numbers)
        if results is None:
            return
        numbers = results
        if numbers.dtype.itemsize <= 4:
            yield np.ascontiguousarray(numbers).view(np.uint8)


def _applied(operation: Operation, numbers: Array) -> Array | None:
    """Return what an operation makes of numbers; None if that depends on where they are."""
    if not isinstance(operation, FUNCTIONS) or _is_by_channel(operation):
        return None
    taken = _given(operation)
    given = [numbers if value is taken else _constant(value) for value in operation.operands]
    if isinstance(operation, ARITHMETIC):
        given = [_repeated(array, numbers) for array in given[:2]] + given[2:]
    known = [array for array in given if array is not None]
    if len(known) < len(given):
        return None
    (result,) = apply(operation, known)
    return result.reshape(-1)


def _given(operation: Operation) -> Value:
    """Return the operand of which an operation computes: of arithmetic, what is no number."""
    computed = [value for value in operation.operands if _constant(value) is None]
    return computed[0] if isinstance(operation, ARITHMETIC) and computed else operation.operand


def _is_alone(operation: Operation, value: Value) -> bool:
    """Whether an operation computes of one value, and of constants as they are or moved."""
    return all(each is value or _constant(each) is not None for each in operation.operands)


def _constant(value: Value) -> Array | None:
    """Return what a value always is: a constant, or what is computed of one alone."""
    if value.constant is not None:
        return value.constant
    made = value.producer
    if not isinstance(made, (Identity, Reshape, Rescale)) or _size(value) > MOST_NUMBERS:
        return None
    operands = [_constant(each) for each in made.operands]
    known = [array for array in operands if array is not None]
    if len(known) < len(operands):
        return None
    (result,) = apply(made, known)
    return result


def _repeated(array: Array | None, numbers: Array) -> Array | None:
    """Return a number as often as there are numbers; None of different ones."""
    if array is None or array is numbers:
        return array
    flat = array.reshape(-1)
    return np.full(numbers.shape, flat[0]) if len(flat) and (flat == flat[0]).all() else None


def _is_by_channel(operation: Operation) -> bool:
    return isinstance(operation, Rescale) and _size(operation.multiplier) != 1


def _size(value: Value) -> int:
    return int(np.prod(value.shape, dtype=np.int64))


def _segments(operation: Operation) -> Iterator[Bytes]:
    """Yield the table of 16 bits of a TABLE: of 512 segments, the start and how far to the next."""
    if not isinstance(operation, Table) or operation.table.dtype is not DType.INT16:
        return
    entries = operation.table.constant
    if entries is not None and len(entries) == SEGMENTS + 1:
        wide = entries.astype(np.int64)
        pairs = np.stack([wide[:-1], wide[1:] - wide[:-1]], 1).astype(np.int16)
        yield np.ascontiguousarray(pairs).view(np.uint8).reshape(-1)
