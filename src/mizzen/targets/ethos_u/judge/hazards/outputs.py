"""Whether outputs last: what an operation wrote to one, no other operator of the model may spoil.

Memory is used again and again, so that an output's bytes may have held anything before. What has no
honest reason is that a later operation of another operator

- leaves a part of what was written, and goes beyond the output;
- writes over all of what was just the output, and has not been read.

Operations of one operator do write over one another, as a PAD does in its corners, and one operator
completes what another has left undone within an output: rows that a PAD has to fill. An output that
several programs complete may hold something else in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mizzen.targets.ethos_u.judge.hazards.findings import SpoiltOutput, span_of
from mizzen.targets.ethos_u.judge.hazards.footprint import Footprint, run
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals
from mizzen.targets.ethos_u.judge.hazards.maps import Kind, MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import Operation
from mizzen.targets.ethos_u.machine.program import TensorAddress


@dataclass(slots=True)
class _Part:
    """What an operation wrote of an output.

    beyond  whether it wrote to bytes beside the output too
    left    of its bytes those that nothing has written since
    unread  whether nothing has read any of its bytes
    over    of bytes that it took from others: the part before, and which
    """

    operation: Operation
    beyond: bool
    written: Intervals
    left: Intervals
    over: list[tuple[_Part, Intervals]] = field(default_factory=list["tuple[_Part, Intervals]"])
    unread: bool = True


class Outputs:
    """The outputs of a program while its operations go by."""

    def __init__(self, outputs: Iterable[TensorAddress]) -> None:
        self._outputs = [_Output(tensor) for tensor in outputs if tensor.size_bytes]

    def execute(self, operation: Operation) -> None:
        """Note what an operation reads and writes of outputs."""
        for output in self._outputs:
            for access in operation.reads:
                if access.place == output.place:
                    output.read(access.bytes)
            for access in operation.writes:
                if access.place == output.place:
                    output.write(operation, access.bytes)

    def findings(self) -> Iterator[SpoiltOutput]:
        """Return the outputs that did not last to the end of the stream."""
        for output in self._outputs:
            yield from output.findings()


class _Output:
    def __init__(self, tensor: TensorAddress) -> None:
        self._name = tensor.name
        self.place = MemoryBlock(Kind.REGION, tensor.region)
        self._whole = run(tensor.offset, tensor.size_bytes)
        self._parts: list[_Part] = []

    def read(self, bytes_: Footprint) -> None:
        if not (self._parts and bytes_.touches(self._whole)):
            return
        for part in self._parts:
            if part.unread and bytes_.intervals.touches(part.left):
                part.unread = False

    def write(self, operation: Operation, bytes_: Footprint) -> None:
        if not bytes_.touches(self._whole):
            return
        shared = bytes_.intervals & self._whole.intervals
        new = _Part(operation, bytes_.intervals.size > shared.size, shared, shared)
        for part in self._parts:
            if part.left.touches(shared):
                new.over.append((part, part.left & shared))
                part.left = part.left - shared
                if not part.left:
                    part.over.clear()
        self._parts = [part for part in self._parts if part.left]
        self._parts.append(new)

    def findings(self) -> Iterator[SpoiltOutput]:
        """Return the first part that another operator has spoilt, if there is one."""
        left = {id(part) for part in self._parts}
        for part in self._parts:
            for before, bytes_ in part.over:
                is_torn = id(before) in left and part.beyond
                if _are_different(before.operation, part.operation) and (
                    is_torn or self._is_lost(before, part)
                ):
                    span = span_of(self.place, bytes_)
                    yield SpoiltOutput(self._name, before.operation, part.operation, span)
                    return

    def _is_lost(self, before: _Part, part: _Part) -> bool:
        """Whether the first part was just the output, nothing read it, and all of it is gone."""
        size = self._whole.intervals.size
        is_output = not before.beyond and before.written.size == size
        return is_output and before.unread and part.written.size == size


def _are_different(one: Operation, other: Operation) -> bool:
    """Whether operations are known to be of different operators of the model."""
    first, second = one.origin.operator, other.origin.operator
    return first is not None and second is not None and first != second
