"""The operations around one of a graph that are computed with it: its chain, and its rescalings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from mizzen.graph import Operation, Value
from mizzen.ops.type_conversion import Rescale

MOST_AWAY = 8
"""Operations of a chain that are looked at, on each side of one."""

Rational = tuple[int, int]
"""An odd multiplier (or 0) and a right shift, which may be negative."""


def rational(multiplier: int, shift: int) -> Rational:
    """Return ``multiplier / 2**shift`` in the one form of it."""
    if multiplier == 0:
        return 0, 0
    zeros = (multiplier & -multiplier).bit_length() - 1
    return multiplier >> zeros, shift - zeros


def rationals(operation: Rescale) -> list[Rational]:
    """Return what a RESCALE multiplies with: of each channel, or one of all."""
    multiplier, shift = operation.multiplier.constant, operation.shift.constant
    if multiplier is None or shift is None:
        return []
    return [
        rational(int(one), int(other))
        for one, other in zip(np.ravel(multiplier), np.ravel(shift), strict=True)
    ]


def is_alone(operation: Operation, value: Value) -> bool:
    """Whether an operation computes of one value and constants."""
    return all(each is value or each.constant is not None for each in operation.operands)


def after(
    value: Value, stops: Callable[[Operation], bool], most: int = MOST_AWAY
) -> Iterator[Operation]:
    """Yield the operations that compute of a value alone, and of what they give, nearest first.

    stops  says where not to go on
    """
    waiting = [(value, 0)]
    while waiting:
        taken, away = waiting.pop(0)
        for user in taken.uses:
            if away < most and is_alone(user, taken) and not stops(user):
                yield user
                waiting += [(result, away + 1) for result in user.results]


def before(operation: Operation, most: int = MOST_AWAY) -> Iterator[Operation]:
    """Yield the operations whose results an operation computes of, nearest first."""
    waiting, seen = [(operation, 0)], set[Operation]()
    while waiting:
        taken, away = waiting.pop(0)
        for operand in taken.operands:
            made = operand.producer
            if made is None or operand.constant is not None or made in seen or away == most:
                continue
            seen.add(made)
            yield made
            waiting.append((made, away + 1))


def is_number(value: Value) -> bool:
    """Whether a value is one constant number."""
    return value.constant is not None and prod(value.shape) == 1
