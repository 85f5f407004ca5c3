"""Whether two programs of one interface compute the same, by executing both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.program import Program
from mizzen.targets.ethos_u.sim import Simulator

INFERENCES = 1
"""Whoever proves the compilation executes more; what is emitted wrongly shows at once."""

SEED = 0
LARGEST = 1 << 15
"""Of an input of 32 bits: scaled, it must not leave what accumulators hold."""


def differing(ours: Program, theirs: Program) -> str:
    """Say which output of a program is not what another computes; empty if all are.

    Raises E5xx and E6xx for a program that cannot be executed.
    """
    inputs = [numbers(row.shape, row.dtype, at) for at, row in enumerate(theirs.inputs)]
    found = [Simulator(program).run(inputs, INFERENCES) for program in (ours, theirs)]
    rows = [row.name for row in theirs.outputs]
    rows += [row.name for row in theirs.inputs if row.variable]
    sides: list[Sequence[npt.NDArray[Any]]] = [(*row.outputs, *row.variables) for row in found]
    for name, mine, other in zip(rows, *sides, strict=True):
        if not np.array_equal(mine, other):
            count = int(np.count_nonzero(mine != other))
            return f'{count} of {other.size} numbers of "{name}" differ'
    return ""


def numbers(shape: Sequence[int], dtype: np.dtype[Any], place: int) -> npt.NDArray[Any]:
    """Return numbers from all of an input's range, the same ones for its place every time."""
    generator = np.random.default_rng((SEED, place))
    whole = (INFERENCES, *shape)
    if dtype == np.bool_:
        return generator.integers(0, 2, whole).astype(dtype)
    low, high = (-LARGEST, LARGEST) if dtype.itemsize > 2 else _limits(dtype)
    return generator.integers(low, high, whole, endpoint=True).astype(dtype)


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
