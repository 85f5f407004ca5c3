"""The step of an NPU operator that works in the arena, with what others leave for it there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from mizzen.artifact.arena import Arena, ArenaValues, Block, Span, arena_of, places_of
from mizzen.artifact.interface import Values
from mizzen.artifact.program import (
    Bytes,
    CompiledPart,
    HazardReport,
    NpuFamily,
    Staged,
    Surroundings,
)
from mizzen.artifact.steps import NpuStep, Step
from mizzen.frontends.tflite import Model

Run = tuple[int, int]
"""First byte, and one past the last."""


class ArenaStep(NpuStep):
    """An NPU operator that shares its memory with the steps before and after it.

    before  the last such step
    since   what has been written as tensors after that one: by the CPU, or from outside
    final   places, among the outputs, of those that no later step completes
    kept    places, among the inputs, of those that are needed after it as they are
    """

    def __init__(
        self,
        family: NpuFamily,
        part: CompiledPart,
        before: ArenaStep | None,
        since: Sequence[Span],
        final: frozenset[int],
        kept: frozenset[int],
    ) -> None:
        super().__init__(family, part)
        self._before = before
        self._since = tuple(since)
        self.final = final
        self.kept = kept

    @cached_property
    def hazards(self) -> HazardReport:
        """What the waits of the stream leave unordered, and what of the arena nothing has written.

        Looks at the steps before first: what they leave is written.
        """
        held = {
            region: list(_within(self._held[span.block], span))
            for region, span in self.part.shared.items()
        }
        kept = {place: list(self._done(place)) for place in self.kept}
        return self.family.hazards(self.program, Surroundings(held, self.final, kept))

    @cached_property
    def simulator(self) -> Any:
        """The simulator of the program, which finds the constants that steps before it staged."""
        return self.family.simulator(self.family.finding(self.program, self._staged()))

    def _staged(self) -> Staged:
        if self._before is None:
            return {}
        left = self._before.family.staged(self._before.simulator)
        runs = [
            (Span(span.block, span.offset_bytes + offset, data.size), data)
            for region, span in self._before.part.shared.items()
            for offset, data in left.get(region, ())
        ]
        for written in self._since:
            runs = [piece for run in runs for piece in _without(*run, written)]
        return {
            region: [
                (run.offset_bytes - span.offset_bytes, data)
                for run, data in runs
                if run.block is span.block and span.offset_bytes <= run.offset_bytes
                and run.end <= span.end
            ]
            for region, span in self.part.shared.items()
        }  # fmt: skip

    def _done(self, place: int) -> Iterator[Run]:
        """Return the bytes of an input that it has had so far, as the region sees them.

        Compilers let one operator write a part of a tensor, and a later one the rest. So these are
        what has been written since the step that gives the tensor, where such a one has.
        """
        tensor = self.program.inputs[place]
        whole = tensor.offset, tensor.offset + tensor.size_bytes
        span = self.part.shared[tensor.region]
        written: list[Run] = []
        step = self._before
        while step is not None:
            written += step.own_runs(span.block)
            if self.inputs[place] in step.outputs:
                own = _within(_joined(written), span)
                yield from ((max(a, whole[0]), min(b, whole[1])) for a, b in own
                            if a < whole[1] and b > whole[0])  # fmt: skip
                return
            step = step._before
        yield whole

    def own_runs(self, block: Block) -> Iterator[Run]:
        """Return the bytes of a block that the step's program writes."""
        for region, span in self.part.shared.items():
            if span.block is block:
                at = span.offset_bytes
                yield from (
                    (start + at, end + at) for start, end in self.hazards.own.get(region, ())
                )

    @cached_property
    def _held(self) -> Mapping[Block, Sequence[Run]]:
        """What holds something when the step starts."""
        blocks = {block: list[Run]() for block in Block}
        if self._before is not None:
            for block, runs in self._before.left.items():
                blocks[block] += runs
        for span in self._since:
            blocks[span.block].append((span.offset_bytes, span.end))
        return {block: _joined(runs) for block, runs in blocks.items()}

    @cached_property
    def left(self) -> Mapping[Block, Sequence[Run]]:
        """What holds something after the step."""
        blocks = {block: list(runs) for block, runs in self._held.items()}
        for region, span in self.part.shared.items():
            at = span.offset_bytes
            written = self.hazards.written.get(region, ())
            blocks[span.block] += [(start + at, end + at) for start, end in written]
        return {block: _joined(runs) for block, runs in blocks.items()}

    def run_on(self, simulator: Any, values: Values, batch: int) -> None:
        """Execute in the arena, where the outputs and the variables' next values then lie."""
        assert isinstance(values, ArenaValues)
        regions = {region: values.bytes(span) for region, span in self.part.shared.items()}
        simulator.run_in(regions, batch)
        values.note(self.outputs)


def share_arena(model: Model, steps: Sequence[Step]) -> tuple[Sequence[Step], Arena | None]:
    """Let the NPU operators of a network share the arena that its compiler planned.

    An operator that is all there is has the arena for itself; so has each of a family without a
    plan. Raises E12x for a plan that is damaged.
    """
    parts = [step for step in steps if isinstance(step, NpuStep) and step.part.shared]
    if not parts or len(steps) == 1:
        return steps, None
    touched = {index for step in steps for index in (*step.inputs, *step.outputs)}
    touched.update((*model.main.inputs, *model.main.outputs))
    places = places_of(model, parts[0].family.arena_offsets(model), touched)
    spans = [span for step in parts for span in step.part.shared.values()]
    arena = arena_of(spans, places)
    return list(_sharing(model, steps, arena)), arena


def _sharing(model: Model, steps: Sequence[Step], arena: Arena) -> Iterator[Step]:
    before: ArenaStep | None = None
    since = [*_spans(model.main.inputs, arena)]
    for position, step in enumerate(steps):
        if not (isinstance(step, NpuStep) and step.part.shared):
            since += _spans(step.outputs, arena)
            yield step
            continue
        since += _spans([variable.index for variable in step.variables], arena)
        later = steps[position + 1 :]
        final = _final(step, later, model.main.outputs)
        kept = _kept(step, later, model.main.outputs)
        before = ArenaStep(step.family, step.part, before, since, final, kept)
        since = []
        yield before


def _final(step: NpuStep, later: Sequence[Step], outputs: Sequence[int]) -> frozenset[int]:
    return frozenset(
        place for place, index in enumerate(step.outputs) if _is_final(index, later, outputs)
    )


def _kept(step: NpuStep, later: Sequence[Step], outputs: Sequence[int]) -> frozenset[int]:
    variables = {variable.index for variable in step.variables}
    return frozenset(
        place
        for place, index in enumerate(step.inputs)
        if index not in variables and _is_read(index, later, outputs)
    )


def _is_read(index: int, later: Sequence[Step], outputs: Sequence[int]) -> bool:
    """Whether what a tensor holds now is read by a later step, or leaves the network."""
    for step in later:
        if index in step.inputs:
            return True
        if index in step.outputs:
            return False
    return index in outputs


def _is_final(index: int, later: Sequence[Step], outputs: Sequence[int]) -> bool:
    """Whether a tensor leaves the NPU as it is; what the NPU reads itself is judged there."""
    for step in later:
        if not isinstance(step, NpuStep):
            if index in step.inputs:
                return True
        elif index in step.outputs:
            return False
    return index in outputs


def _spans(indices: Iterable[int], arena: Arena) -> Iterator[Span]:
    return (arena.places[index].span for index in indices if index in arena.places)


def _within(runs: Sequence[Run], span: Span) -> Iterator[Run]:
    """Return runs as a region that lies at `span` sees them."""
    for start, end in runs:
        low, high = max(start, span.offset_bytes), min(end, span.end)
        if low < high:
            yield low - span.offset_bytes, high - span.offset_bytes


def _without(run: Span, data: Bytes, written: Span) -> Iterator[tuple[Span, Bytes]]:
    """Return what is left of a run of bytes when others were written."""
    start, end = run.offset_bytes, run.end
    low, high = max(start, written.offset_bytes), min(end, written.end)
    if run.block is not written.block or low >= high:
        yield run, data
        return
    if start < low:
        yield Span(run.block, start, low - start), data[: low - start]
    if high < end:
        yield Span(run.block, high, end - high), data[high - start :]


def _joined(runs: Iterable[Run]) -> Sequence[Run]:
    merged: list[Run] = []
    for start, end in sorted(runs):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return merged
