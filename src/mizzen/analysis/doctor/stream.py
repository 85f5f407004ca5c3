"""Where in a command stream the NPU stopped: QREAD as an operation, with the user's layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.artifact.steps import NpuStep, is_npu, read_network
from mizzen.isa import Kind
from mizzen.targets.ethos_u.machine.program import Program

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

WORD_BYTES = 4
TFLITE = b"TFL3"


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """An operation of a command stream.

    step   of the artifact
    place  of the operation among those of its stream, from 0
    layer  of the user's network, where the artifact says so
    """

    step: int
    place: int
    operations: int
    name: str
    layer: str | None

    def __str__(self) -> str:
        whose = f" of {self.layer}" if self.layer else ""
        return f"operation {self.place} of {self.operations}, {self.name}{whose}"

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "step": self.step,
            "operation": self.place,
            "operations": self.operations,
            "name": self.name,
            "layer": self.layer,
        }


def npu_steps(artifact: Artifact) -> Sequence[tuple[int, Program]]:
    """Return the programs for Ethos-U of an artifact, with their steps."""
    return [
        (index, step.program)
        for index, step in enumerate(artifact.steps)
        if isinstance(step, NpuStep) and isinstance(step.program, Program)
    ]


def places(artifact: Artifact, qread_bytes: int, node: int | None = None) -> Sequence[StreamPlace]:
    """Return the operation at which the NPU stopped, in each stream that it may have been.

    The NPU reads ahead of what it executes, so that one before it may be the one that failed. None
    where nothing was read.

    node  the operator of the network that failed, where a log says so
    """
    if qread_bytes == 0:
        return ()
    asked = npu_steps(artifact)
    chosen = _of_node(artifact, asked, node)
    inside = [(step, program) for step, program in chosen if qread_bytes <= program.words.nbytes]
    stops = (_place(step, program, qread_bytes) for step, program in inside)
    return [place for place in stops if place is not None]


def _of_node(
    artifact: Artifact, steps: Sequence[tuple[int, Program]], node: int | None
) -> Sequence[tuple[int, Program]]:
    """Return the program of an operator of a TFLite network; all where nothing says which."""
    if node is None or len(steps) < 2 or artifact.data[4:8] != TFLITE:
        return steps
    operators = read_network(artifact.data, artifact.name).main.operators
    numbers = [index for index, operator in enumerate(operators) if is_npu(operator)]
    if node not in numbers or len(numbers) != len(steps):
        return steps
    return [steps[numbers.index(node)]]


def _place(step: int, program: Program, qread_bytes: int) -> StreamPlace | None:
    """Return the last operation that was read; the first one where none was."""
    work = [each for each in program.instructions if each.command.kind is Kind.OPERATION]
    if not work:
        return None
    read = [each for each in work if WORD_BYTES * each.offset_words <= qread_bytes]
    place = max(len(read) - 1, 0)
    origin = program.origins.get(WORD_BYTES * work[place].offset_words)
    layer = None if origin is None else str(origin)
    return StreamPlace(step, place, len(work), work[place].name, layer)
