"""Match what a log says to an artifact: its inferences, its parts, the operators of a profile.

Parts are the artifact's NPU operators, in their order, each a command stream of its own. A profile
names every operator in order, perhaps for several inferences one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from mizzen.analysis.cost import cost_report
from mizzen.analysis.measurement.fitting import Sample
from mizzen.analysis.measurement.formats import Format
from mizzen.analysis.measurement.reading import Measurement, OperatorTime
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.written import as_written
from mizzen.diagnostics import Device, MizzenError, fail
from mizzen.report.cost import OperationCost
from mizzen.targets.ethos_u.judge.timing import Step, estimate, events_of, steps_of
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.counters import (
    EVENTS,
    FIRST_READ,
    FIRST_WRITTEN,
    SECOND_READ,
    SECOND_WRITTEN,
)
from mizzen.targets.ethos_u.machine.program import Program

BEATS = (FIRST_READ, FIRST_WRITTEN, SECOND_READ, SECOND_WRITTEN)
FEW_BEATS = 1000
"""A port with fewer carries next to nothing, and says nothing about a program."""
BEATS_APART = 0.2
"""Of beats, from which they are another program's.

The model's are within 0.16 of those of another compiler's version. Ref: docs/explanation/timing.md.
"""
SHOWN_KINDS = 2
LEAST_COUNT = 1
"""Of an inference: less is of a counter that did not run, whatever the log's number is."""


@dataclass(frozen=True, slots=True)
class Beats:
    """Beats of a port, of one inference, as counted and as the programs move them."""

    event: str
    counted: float
    expected: float


@dataclass(frozen=True, slots=True)
class CpuTime:
    """What an operator on the CPU took, in ticks of the log's timer, and what is estimated of it.

    estimate  in cycles of the core that the estimate is for
    """

    name: str
    ticks: float
    estimate: int
    inferences: int


@dataclass(frozen=True, slots=True)
class Matched:
    """A log's counts as those of an artifact."""

    samples: tuple[Sample, ...]
    beats: tuple[Beats, ...]
    cpu: tuple[CpuTime, ...]

    @property
    def doubts(self) -> Iterator[str]:
        """Say which beats are another program's."""
        for each in self.beats:
            if max(each.counted, each.expected) < FEW_BEATS:
                continue
            if abs(each.counted / max(each.expected, 1.0) - 1) > BEATS_APART:
                yield f"{each.event} {each.counted:,.0f} instead of {each.expected:,.0f}"


@dataclass(frozen=True, slots=True)
class _Part:
    """An NPU operator of the artifact."""

    name: str
    program: Program


@dataclass(frozen=True, slots=True)
class _Entry:
    """An operator as a profile has it; `part` is the place of the NPU's among the parts."""

    name: str
    part: int | None
    cost: OperationCost | None = None


@dataclass(slots=True)
class _Counts:
    """Counts by what they are of: of parts by their place, of all together, of CPU operators."""

    parts: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    ticks: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    whole: list[float] = field(default_factory=list[float])
    whole_ticks: list[float] = field(default_factory=list[float])
    cpu: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))


def match(
    artifact: Artifact, measurements: Sequence[Measurement], configuration: EthosUConfiguration
) -> Matched:
    """Match measurements to an artifact.

    E741 for one without a program of Ethos-U, E742 for a profile of other operators, E743 for other
    parts, E744 where no count is of the NPU's work.
    """
    artifact = as_written(artifact.subgraphs[0])
    parts, entries = _parts(artifact, configuration)
    counts = _Counts()
    for measurement in measurements:
        _take(measurement, counts, parts, entries)
    samples = tuple(_samples(counts, parts))
    if not samples:
        raise _nothing(artifact, measurements)
    arch = configuration.accelerator.arch
    return Matched(
        samples,
        tuple(_beats(measurements, parts, arch, configuration)),
        tuple(
            CpuTime(entries[place].name, fmean(ticks), cost.processor_cycles, len(ticks))
            for place, ticks in sorted(counts.cpu.items())
            if (cost := entries[place].cost) is not None
        ),
    )


def _nothing(artifact: Artifact, measurements: Sequence[Measurement]) -> MizzenError:
    """Return the error of a log without a count of the NPU's work: E744."""
    if any(_counts_npu(each) for each in measurements):
        return fail(
            "E744",
            "a count of the NPU's work must be 1 cycle or more, and the log has only 0 for "
            f"{artifact.name}",
            help="did the NPU run, and was its counter started before it?",
        )
    return fail(
        "E744",
        "a count must be of the NPU's work, and the log has only the processor's "
        f"for {artifact.name}, which has operators on the CPU beside the NPU's",
        help="print the NPU's cycle counter, or the runtime's profile by operator",
    )


def _counts_npu(measurement: Measurement) -> bool:
    """Whether a measurement has a count of the NPU, or of an inference that took no time."""
    on_npu = any(operator.on_npu for operator in measurement.operators)
    return measurement.npu_cycles is not None or on_npu or measurement.cpu_cycles == 0


def _parts(
    artifact: Artifact, configuration: EthosUConfiguration
) -> tuple[Sequence[_Part], Sequence[_Entry]]:
    """Return the artifact's NPU operators, and all of its operators as a profile has them."""
    report = cost_report(artifact, configuration=configuration)
    kinds: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for each in report.operations:
        if each.device is Device.NPU and each.origin is not None and each.origin.kind:
            kinds[each.step][each.origin.kind] = None
    parts: list[_Part] = []
    entries: list[_Entry] = []
    on_cpu: defaultdict[int, list[OperationCost]] = defaultdict(list)
    for each in report.operations:
        if each.device is Device.CPU:
            on_cpu[each.step].append(each)
    for number, step in enumerate(artifact.steps):
        if isinstance(step, NpuStep) and isinstance(step.program, Program):
            entries.append(_Entry("ethos-u", len(parts)))
            named = list(kinds[number])
            more = " ..." if len(named) > SHOWN_KINDS else ""
            parts.append(_Part(", ".join(named[:SHOWN_KINDS]) + more, step.program))
        entries += [_Entry(each.name, None, each) for each in on_cpu[number]]
    if not parts:
        raise fail(
            "E741",
            f"{artifact.name} must have a program of Ethos-U, whose counters a log is of, and has "
            "none",
            help="give the artifact that ran on the board",
        )
    return parts, entries


def _take(
    measurement: Measurement, counts: _Counts, parts: Sequence[_Part], entries: Sequence[_Entry]
) -> None:
    cycles, ticks = measurement.npu_cycles or 0.0, measurement.cpu_cycles or 0.0
    if measurement.part is not None:
        number, of = measurement.part
        if of != len(parts) or not 1 <= number <= of:
            raise fail(
                "E743",
                f"the log must be of the artifact's {len(parts)} parts, and "
                f"{measurement.where} is of part {number} of {of}",
                help="give the artifact that ran: `mizzen compile --instrument` writes one whose "
                "parts are counted",
            )
        if cycles >= LEAST_COUNT:
            counts.parts[number - 1].append(cycles)
    elif cycles >= LEAST_COUNT:
        counts.whole.append(cycles)
    elif measurement.operators:
        _profile(measurement, counts, entries)
    elif ticks >= LEAST_COUNT and len(entries) == len(parts):
        counts.whole_ticks.append(ticks)


def _profile(measurement: Measurement, counts: _Counts, entries: Sequence[_Entry]) -> None:
    """Take a profile: every operator in order, or sums by name."""
    operators = measurement.operators
    if measurement.format is Format.TFLM_TAGS:
        _sums(operators, counts, entries)
        return
    known = [entry.part is not None for entry in entries]
    rounds, rest = divmod(len(operators), len(entries))
    flags = [operator.on_npu for operator in operators]
    if rest or flags != known * rounds:
        raise fail(
            "E742",
            "a profile must have the artifact's operators in their order, "
            f"{_listed([entry.name for entry in entries])}, and {measurement.where} has "
            f"{_listed([operator.name for operator in operators])}",
            help="give the artifact that ran, and the whole profile of each inference",
        )
    for place, operator in enumerate(operators):
        entry = entries[place % len(entries)]
        if operator.ticks < LEAST_COUNT:
            continue
        if entry.part is None:
            counts.cpu[place % len(entries)].append(operator.ticks)
        else:
            to = counts.parts if operator.is_npus else counts.ticks
            to[entry.part].append(operator.ticks)


def _sums(operators: Sequence[OperatorTime], counts: _Counts, entries: Sequence[_Entry]) -> None:
    """Take sums by name; the NPU's is of all its operators, that of a CPU operator of one alone."""
    names = [entry.name for entry in entries]
    for operator in operators:
        if operator.ticks < LEAST_COUNT:
            continue
        if operator.on_npu:
            counts.whole_ticks.append(operator.ticks)
        elif names.count(operator.name) == 1:
            counts.cpu[names.index(operator.name)].append(operator.ticks)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6])
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown


def _samples(counts: _Counts, parts: Sequence[_Part]) -> Iterator[Sample]:
    """Return the counts as samples: first those of parts, then those of whole inferences."""
    steps = [steps_of(part.program) for part in parts]
    for known, in_ticks in ((counts.parts, False), (counts.ticks, True)):
        for place, values in sorted(known.items()):
            name = f"part {place + 1}"
            if parts[place].name:
                name = f"{name}: {parts[place].name}"
            yield _sample(name, (steps[place],), values, in_ticks)
    if counts.whole:
        yield _sample("inference", tuple(steps), counts.whole, False)
    if counts.whole_ticks:
        yield _sample("inference", tuple(steps), counts.whole_ticks, True)


def _sample(
    name: str, steps: tuple[Sequence[Step], ...], values: Sequence[float], in_ticks: bool
) -> Sample:
    mean = fmean(values)
    spread = stdev(values) / mean if len(values) > 1 else 0.0
    return Sample(name, steps, mean, spread, len(values), in_ticks)


def _beats(
    measurements: Sequence[Measurement],
    parts: Sequence[_Part],
    arch: Arch,
    configuration: EthosUConfiguration,
) -> Iterator[Beats]:
    """Return the beats of each port that were counted, of whole inferences or of all parts."""
    width = configuration.accelerator.traits.axi_bytes_per_cycle
    moved = [events_of(estimate(part.program, configuration), width) for part in parts]
    names = {event.name: event.number for event in EVENTS if arch in event.archs}
    for name, number in names.items():
        if number not in BEATS:
            continue
        expected = float(sum(events.get(number, 0) for events in moved))
        counted = _counted(name, measurements, len(parts))
        if counted is not None:
            yield Beats(name, counted, expected)


def _counted(name: str, measurements: Sequence[Measurement], parts: int) -> float | None:
    """Return the mean count of an event in an inference; None where not all of one is counted."""
    whole = [each.events[name] for each in measurements if not each.part and name in each.events]
    if whole:
        return fmean(whole)
    by_part: defaultdict[int, list[float]] = defaultdict(list)
    for each in measurements:
        if each.part and name in each.events:
            by_part[each.part[0]].append(each.events[name])
    return sum(map(fmean, by_part.values())) if len(by_part) == parts else None
