"""The simulator: executes a compiled network for a whole batch of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, fail
from mizzen.targets.ethos_n.program import Buffer, BufferKind, Program
from mizzen.targets.ethos_n.sim.dram import Memory, block_sizes
from mizzen.targets.ethos_n.sim.execution_plan import Plan, plan

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

MEMORY_BUDGET_BYTES = 1 << 26
"""A batch whose memory would be larger is executed in several parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a run gives: uint8 arrays `[batch, bytes]` of the output buffers in order, and notes."""

    outputs: tuple[Bytes, ...]
    diagnostics: tuple[Diagnostic, ...]


class Simulator:
    """Executes one program; planning happens once, at construction.

    Raises E950 to E968, and E940 to E949 for weights, for a stream that cannot be executed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plan: Plan = plan(program)
        self._inputs = program.of_kind(BufferKind.INPUT)
        self._outputs = program.of_kind(BufferKind.OUTPUT)

    def run(self, inputs: Sequence[Array], batch: int) -> Outcome:
        """Execute for `inputs`: for each input buffer in order an array `[batch, ...]` of 8 bits.

        An image's elements are those of the buffer in its layout. They may end where what the
        program reads does, as a buffer can be larger than its tensor. E966 for other arrays.
        """
        arrays = self._as_bytes(inputs, batch)
        sizes = sum(block_sizes(self.program).values())
        part = max(1, MEMORY_BUDGET_BYTES // max(1, sizes))
        outputs = [
            self._run_part([array[start : start + part] for array in arrays], batch - start)
            for start in range(0, batch, part)
        ]
        joined = tuple(np.concatenate(same) for same in zip(*outputs, strict=True))
        return Outcome(joined, self.plan.diagnostics)

    def _run_part(self, inputs: list[Bytes], left: int) -> list[Bytes]:
        batch = min([left, *map(len, inputs)])
        memory = Memory(batch, self.program)
        for buffer, array in zip(self._inputs, inputs, strict=True):
            memory.bytes(buffer.id)[:, : array.shape[1]] = array
        for run in self.plan.runs:
            run(memory)
        return [memory.bytes(buffer.id) for buffer in self._outputs]

    def _as_bytes(self, inputs: Sequence[Array], batch: int) -> list[Bytes]:
        if batch < 1 or len(inputs) != len(self._inputs):
            raise fail(
                "E966",
                f"there must be 1 image or more and {len(self._inputs)} inputs, not {batch} and "
                f"{len(inputs)}",
            )
        return [
            self._checked(buffer, array, batch)
            for buffer, array in zip(self._inputs, inputs, strict=True)
        ]

    def _checked(self, buffer: Buffer, array: Array, batch: int) -> Bytes:
        least = self.plan.needed.get(buffer.id, 0)
        is_right = array.dtype.itemsize == 1 and array.size % batch == 0
        if not is_right or not least <= array.size // batch <= buffer.size:
            raise fail(
                "E966",
                f"the array for buffer {buffer.id} must have {batch} times {least} to "
                f"{buffer.size} elements of 8 bits, not {array.size} of "
                f"{8 * array.dtype.itemsize}",
            )
        return np.ascontiguousarray(array).reshape(batch, -1).view(np.uint8)
