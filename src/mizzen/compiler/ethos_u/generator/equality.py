"""Whether two programs of one interface compute the same, by executing both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

INFERENCES = 1
"""Whoever proves the compilation executes more; what is emitted wrongly shows at once."""

SEED = 0
BYTE = np.dtype(np.int8)
LARGEST = 1 << 15
"""Of an input of 32 bits: scaled, it must not leave what accumulators hold."""

Array = npt.NDArray[Any]


def differing(ours: Program, theirs: Program, inputs: Sequence[Array] | None = None) -> str:
    """Say which output of a program is not what another computes; empty if all are.

    inputs  of one inference; numbers from all of their range if there are none

    Raises E5xx and E6xx where ours cannot be executed; that theirs cannot be is a difference.
    """
    return Expected(theirs, inputs).differing(ours)


class Expected:
    """What a program computes, by executing it once, where anybody asks.

    inputs  as `differing` takes them
    """

    def __init__(self, program: Program, inputs: Sequence[Array] | None = None) -> None:
        self._program = program
        self._given = inputs

    @cached_property
    def _inputs(self) -> Sequence[Array]:
        return drawn(self._program) if self._given is None else self._given

    @cached_property
    def _results(self) -> list[Array] | MizzenError:
        try:
            return _run(self._program, self._inputs)
        except MizzenError as error:
            return error

    def differing(self, ours: Program) -> str:
        """Say which output of a program is not what is expected; empty if all are.

        Raises as the function `differing` does.
        """
        found, expected = _run(ours, self._inputs), self._results
        if isinstance(expected, MizzenError):
            return f"the other cannot be executed: {expected.diagnostic.message}"
        rows = [row.name for row in self._program.outputs]
        rows += [row.name for row in self._program.inputs if row.variable]
        for name, mine, other in zip(rows, found, expected, strict=True):
            if not np.array_equal(mine, other):
                count = int(np.count_nonzero(mine != other))
                return f'{count} of {other.size} numbers of "{name}" differ'
        return ""


def _run(program: Program, inputs: Sequence[Array]) -> list[Array]:
    found = Simulator(program).run(inputs, INFERENCES)
    return [*found.outputs, *found.variables]


def drawn(program: Program) -> list[Array]:
    """Return numbers for all that a program takes."""
    return [numbers(row.shape, row.dtype, at) for at, row in enumerate(program.inputs)]


def found_in_memory(
    programs: Sequence[Program], named: Sequence[Collection[str]]
) -> list[list[Array]]:
    """Return what programs find in their inputs that are executed in one memory, in their order.

    named  names of the inputs that others write, which are drawn; in all else is what the programs
           before have left: bytes of wider numbers, which are nothing that may be drawn

    Raises as `differing` does.
    """
    memory = _memory(programs)
    found: list[list[Array]] = []
    for program, names in zip(programs, named, strict=True):
        inputs = [
            numbers(row.shape, row.dtype, at) if row.name in names else _read(memory, row)
            for at, row in enumerate(program.inputs)
        ]
        outcome = Simulator(program).run(inputs, INFERENCES)
        states = [row for row in program.inputs if row.variable]
        rows = (*program.inputs, *program.outputs, *states)
        for row, array in zip(rows, (*inputs, *outcome.outputs, *outcome.variables), strict=True):
            memory[row.region][row.offset : row.offset + row.size_bytes] = array.view(np.uint8).flat
        found.append(inputs)
    return found


def _memory(programs: Sequence[Program]) -> Mapping[int, npt.NDArray[np.uint8]]:
    sizes: dict[int, int] = {}
    for program in programs:
        for region, size in program.region_bytes.items():
            sizes[region] = max(size, sizes.get(region, 0))
    rows = {region: numbers((size,), BYTE, region) for region, size in sizes.items()}
    return {region: row[0].view(np.uint8) for region, row in rows.items()}


def _read(memory: Mapping[int, npt.NDArray[np.uint8]], row: TensorAddress) -> Array:
    data = memory[row.region][row.offset : row.offset + row.size_bytes].copy()
    return data.view(row.dtype).reshape(INFERENCES, *row.shape)


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
