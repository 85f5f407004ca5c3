"""What streams that are right do, and this one does not: told without the network.

None of it is wrong for certain. A result that nothing reads, a table that nothing takes, constants
that nothing reads: each is what a wrong address or the constants of another network look like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.artifact.program import CONSTANT, INPUT, TracedOperation
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import Diagnostic, Origin, Severity

UNREAD_SHARE = 0.25
"""Of the constants: as many that nothing reads are no padding, but something else's."""

UNREAD_BYTES = 1024
"""Of the constants: fewer may be padding of small networks."""

INFERENCES = 4
"""Different inputs, at least, that must not all give the same."""

SATURATED_SHARE = 0.95
"""Of an output on inputs that vary: so many elements at an end of the range are no network's."""

TELLING_ELEMENTS = 64
"""Of an output: fewer, as scores of a few classes, may all be at an end."""


def invariants_of(artifact: Artifact) -> Iterator[Diagnostic]:
    """Yield what is strange in the streams of an artifact, without executing them.

    W340 for results that nothing reads, W341 for constants, W342 for tables that no function takes,
    N670 for outputs that no input reaches, N671 for inputs that nothing reads.
    """
    read: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by address and size of constants
    for place, step in enumerate(artifact.steps):
        if not isinstance(step, NpuStep) or not step.family.can_trace:
            continue
        seen = _Seen(place, step, tuple(step.family.traced(step.simulator)))
        yield from seen.strange()
        for region, data in step.family.constant_regions(step.program).items():
            key = data.__array_interface__["data"][0], data.nbytes
            read.setdefault(key, []).extend(seen.constants(region))
    for (_, size), runs in read.items():
        yield from _unread(artifact, size, runs)


@dataclass(frozen=True)
class _Seen:
    """The operations of an NPU operator, and the end of its program last."""

    place: int
    step: NpuStep
    traces: tuple[TracedOperation, ...]

    def strange(self) -> Iterator[Diagnostic]:
        *operations, end = self.traces
        makers = {each.index: _makers(each) for each in self.traces}
        taken = set[int]().union(*makers.values())
        for each in operations:
            fills = bool(makers[each.index]) and makers[each.index] <= {CONSTANT}  # padding
            if each.gives is not None and each.index not in taken and not fills:
                yield self._dead(each)
        yield from self._tables(operations)
        inputs = [INPUT - place for place in range(len(self.step.inputs))]
        for place, index in zip(inputs, self.step.inputs, strict=True):
            if place not in taken:
                yield self._not_read(index)
        if inputs and not _ancestors(makers, end.index).intersection(inputs):
            yield self._constant()

    def constants(self, region: int) -> Iterator[tuple[int, int]]:
        """Yield the bytes of a region that operations read."""
        for each in self.traces:
            yield from ((low, high) for own, low, high in each.constants if own == region)

    def _dead(self, each: TracedOperation) -> Diagnostic:
        return Diagnostic(
            "W340",
            f"what an operation writes must be read by another or leave the program, and nothing "
            f"reads the result of operation {each.index}, {each.kind}",
            Severity.WARNING,
            self._origin(each),
            help="its output's address may be wrong, or that of the input that should read it: "
            "mizzen compare MODEL --artifact says which",
        )

    def _tables(self, operations: Sequence[TracedOperation]) -> Iterator[Diagnostic]:
        """Yield tables that are loaded, and that no function takes before they are overwritten."""
        for at, load in enumerate(operations):
            if load.table is None or load.gives is not None:
                continue
            if not _is_taken(load.table, operations[at + 1 :]):
                yield Diagnostic(
                    "W342",
                    f"a table that is loaded must be taken by a function, and nothing takes that "
                    f"of operation {load.index}, {load.kind}",
                    Severity.WARNING,
                    self._origin(load),
                    help="the number of the table in SET_ACTIVATION may be wrong: mizzen inspect "
                    "--listing",
                )

    def _not_read(self, index: int) -> Diagnostic:
        return Diagnostic(
            "N671",
            f"an input is usually read, and no operation of step {self.place} reads input {index}",
            Severity.NOTE,
        )

    def _constant(self) -> Diagnostic:
        return Diagnostic(
            "N670",
            f"outputs usually follow from inputs, and those of step {self.place} follow from "
            "constants alone",
            Severity.NOTE,
            help="where the network computes something, an address in the stream is wrong: mizzen "
            "compare MODEL --artifact says which",
        )

    def _origin(self, each: TracedOperation) -> Origin:
        known = self.step.program.origins.get(each.offset_bytes, Origin())
        return replace(known, command=each.offset_bytes // 4)


def _makers(each: TracedOperation) -> set[int]:
    made = (np.unique(taken.makers) for taken in each.takes)
    return {int(maker) for makers in made for maker in makers} | set(each.passed)


def _ancestors(makers: Mapping[int, set[int]], end: int) -> set[int]:
    """Return all that something follows from."""
    found, waiting = set[int](), [end]
    while waiting:
        for maker in makers.get(waiting.pop(), ()):
            if maker not in found:
                found.add(maker)
                waiting.append(maker)
    return found


def _is_taken(table: tuple[int, int], later: Sequence[TracedOperation]) -> bool:
    low, high = table
    for each in later:
        if each.table is None or each.table[0] >= high or each.table[1] <= low:
            continue
        return each.gives is not None
    return False


def _unread(artifact: Artifact, size: int, runs: Sequence[tuple[int, int]]) -> Iterator[Diagnostic]:
    """Yield a warning where much of some constants is read by no operation."""
    is_read = np.zeros(size, np.bool_)
    for low, high in runs:
        is_read[low:high] = True
    unread = size - int(is_read.sum())
    if unread >= UNREAD_BYTES and unread > UNREAD_SHARE * size:
        yield Diagnostic(
            "W341",
            f"constants must be read by operations, and of the {size:,} bytes of {artifact.name} "
            f"nothing reads {unread:,}",
            Severity.WARNING,
            help="the stream and the constants may be of two networks: compile it again",
        )


def strange_outputs(
    artifact: Artifact, inputs: Sequence[Array], outputs: Sequence[Array]
) -> Iterator[Diagnostic]:
    """Yield what is strange in outputs `[N, *shape]` of inputs that vary.

    N672 where all outputs are the same for all inputs, N673 where nearly all elements of one are
    the largest or the smallest number.
    """
    count = len(inputs[0]) if inputs else 0
    if count < INFERENCES or not outputs or any(map(_is_constant, inputs)):
        return
    if all(map(_is_constant, outputs)):
        yield Diagnostic(
            "N672",
            f"outputs usually vary with inputs, and all of {artifact.name} are the same for "
            f"{count} different inputs",
            Severity.NOTE,
            help="give inputs of the network's own to mizzen run; if nothing changes there, a "
            "register in the stream is wrong: mizzen compare MODEL --artifact says which",
        )
        return
    for info, array in zip(artifact.outputs, outputs, strict=True):
        if array.dtype.kind in "iu" and array[0].size >= TELLING_ELEMENTS:
            yield from _saturated(info, array)


def _is_constant(array: Array) -> bool:
    return bool((array == array[:1]).all())


def _saturated(info: TensorInfo, array: Array) -> Iterator[Diagnostic]:
    ends = np.iinfo(array.dtype)
    for end, word in ((ends.max, "largest"), (ends.min, "smallest")):
        part = int(np.count_nonzero(array == end)) / array.size
        zeros = () if info.quantization is None else info.quantization.zero_point
        if part >= SATURATED_SHARE and end not in zeros:
            yield Diagnostic(
                "N673",
                f"an output is usually within its range, and {part:.0%} of the elements of "
                f'"{info.name}" are the {word} number',
                Severity.NOTE,
                help="a scale or zero point in the stream may be wrong: mizzen compare MODEL "
                "--artifact says which",
            )
