"""Find code of our own for an NPU operator, and decide whose code it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mizzen.compiler.ethos_u.generator.candidates import WORK, Budget, arranged, rounds
from mizzen.compiler.ethos_u.generator.faults import Faults
from mizzen.compiler.ethos_u.generator.judging import Judged, is_better, judged, worse
from mizzen.compiler.ethos_u.generator.sequences import Made, Source
from mizzen.diagnostics import MizzenError
from mizzen.report.code import CodeChoice, Rejected, StreamCost, Verdict
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Schedule, Sequence
from mizzen.targets.ethos_u.generator.schedule import UNLIMITED, Effort, Limits, schedule
from mizzen.targets.ethos_u.judge.timing import Timed
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator, Search
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex

REFINED = 2
"""Of all that was scheduled, what a thorough search schedules once more with greater effort."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The program that an NPU operator gets, how long its operations take, and why it is this.

    schedule  that it was emitted from; None of Vela's
    """

    program: Program
    timed: list[Timed]
    choice: CodeChoice
    schedule: Schedule | None = None


def keep(
    program: Program, configuration: EthosUConfiguration, verdict: Verdict, reason: str
) -> Found:
    """Return Vela's program, with the reason."""
    theirs = judged(program, configuration)
    return Found(program, theirs.timed, CodeChoice(verdict, reason, theirs.cost))


Order = Callable[[StreamCost], int]
"""What is to be as small as can be."""


def cycles(cost: StreamCost) -> int:
    """Return the cycles of a program."""
    return cost.cycles


def maps_bytes(cost: StreamCost) -> int:
    """Return the bytes that a program writes to."""
    return cost.arena_bytes + cost.fast_bytes


def search(program: Program, source: Source, configuration: EthosUConfiguration) -> Found:
    """Look for a program that does what Vela's does in less time, and return the one to take."""
    theirs, faults = judged(program, configuration), Faults(program, source.inputs)

    def find(begun: Made, granted: bool) -> Found:
        return _fastest(begun, faults, theirs, configuration, granted=granted)

    both = configuration.search is Search.THOROUGH
    return of_sources(program, source, theirs, find, cycles, both=both)


def of_sources(
    program: Program,
    source: Source,
    theirs: Judged,
    find: Callable[[Made, bool], Found],
    order: Order,
    *,
    both: bool,
) -> Found:
    """Return what is found of our own rules' operations, else of those that Vela's words are.

    find  of some operations, and whether there is a program whatever it takes
    both  whether Vela's words are tried also where there is something to take without
    """
    try:
        begun = source.made(program)
        found = find(begun, True)
    except MizzenError as error:
        return refused(program, theirs, error)
    if not begun.lowered or found.choice.is_corrected or (found.choice.is_own and not both):
        return found
    try:
        other = find(source.lifted(program), not found.choice.is_own)
    except MizzenError:
        return found
    return _better(found, other, order)


def _fastest(
    begun: Made,
    faults: Faults,
    theirs: Judged,
    configuration: EthosUConfiguration,
    *,
    granted: bool,
) -> Found:
    """Return the fastest program of some operations, or the one that there is.

    granted  whether there is one, whatever it takes to schedule it
    """
    program = theirs.program
    budget = Budget(WORK[configuration.search], granted=granted)
    rows = arranged(begun.sequence, configuration)
    tried: list[_Tried] = []
    found = None
    for sequences in rounds(rows, configuration, theirs.cost.arena_bytes):
        tried += _tried(begun, sequences, program, configuration, budget)
        found = decided(faults, theirs, begun, _judged(tried), configuration, cycles)
        if found.choice.is_own:
            break
    assert found is not None, "there is a first round"
    if configuration.search is not Search.THOROUGH:
        return found
    tried += _refined(tried, begun, program, theirs, configuration, budget)
    return decided(faults, theirs, begun, _judged(tried), configuration, cycles)


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """A sequence that was scheduled, and the program that came of it."""

    sequence: Sequence
    judged: Judged


def _judged(tried: list[_Tried]) -> list[Judged]:
    return [row.judged for row in tried]


def _tried(
    begun: Made,
    sequences: list[Sequence],
    program: Program,
    configuration: EthosUConfiguration,
    budget: Budget,
) -> list[_Tried]:
    """Return the programs that there are of some operations, arranged otherwise or as they are.

    What must lie somewhere may be alive for longer than it can be there once operations are
    arranged otherwise.
    """
    found: list[_Tried] = []
    failed = False
    for row in sequences:
        if budget.grants(row):
            try:
                found.append(_Tried(row, made(row, program, configuration, begun.places)))
            except MizzenError:
                failed = True
    if failed and not found:
        row = begun.sequence
        found.append(_Tried(row, made(row, program, configuration, begun.places)))
    return found


def _refined(
    tried: list[_Tried],
    begun: Made,
    program: Program,
    theirs: Judged,
    configuration: EthosUConfiguration,
    budget: Budget,
) -> Iterator[_Tried]:
    """Yield the best of what was tried, scheduled with greater effort."""

    def rank(row: _Tried) -> tuple[bool, int]:
        cost = row.judged.cost
        return worse(cost, theirs.cost) != "", cycles(cost)

    for row in sorted(tried, key=rank)[:REFINED]:
        if budget.grants(row.sequence):
            effort = Effort.THOROUGH
            ours = made(row.sequence, program, configuration, begun.places, effort)
            yield _Tried(row.sequence, ours)


def _better(found: Found, other: Found, order: Order) -> Found:
    """Return the one that may be taken and costs less, with what was tried for both."""
    tried = (*found.choice.tried, *other.choice.tried)
    owned = [
        (order(row.choice.own), at, row)
        for at, row in enumerate((found, other))
        if row.choice.is_own and row.choice.own is not None
    ]
    best = min(owned)[2] if owned else found
    return replace(best, choice=replace(best.choice, tried=tried))


def refused(program: Program, theirs: Judged, error: MizzenError) -> Found:
    """Return Vela's program, with the reason for which there is no other."""
    reason = f"Mizzen cannot schedule it anew: {error.diagnostic.message}"
    return Found(program, theirs.timed, CodeChoice(Verdict.REFUSED, reason, theirs.cost))


def made(
    sequence: Sequence,
    program: Program,
    configuration: EthosUConfiguration,
    places: Limits = UNLIMITED,
    effort: Effort = Effort.FAST,
    share: float = 1.0,
) -> Judged:
    """Return a program of our own, within a share of the memory that another one takes.

    places  of what must lie somewhere
    """
    sizes = {region: int(share * size) for region, size in program.region_bytes.items()}
    fast = sizes.get(RegionIndex.SCRATCH_FAST, 0)
    limits = replace(places, scratch_bytes=sizes[RegionIndex.SCRATCH], fast_bytes=fast)
    ours = scheduled(sequence, configuration, limits, effort)
    return replace(ours, program=_with_interface(ours.program, program))


def scheduled(
    sequence: Sequence, configuration: EthosUConfiguration, limits: Limits, effort: Effort
) -> Judged:
    """Return a program of our own, within limits. Raises as scheduling and emitting do."""
    plan = schedule(sequence, configuration, limits, effort)
    ours = judged(emit(plan, configuration.accelerator), configuration)
    return replace(ours, schedule=plan)


def _with_interface(ours: Program, theirs: Program) -> Program:
    """Return a program that takes and gives what another does, where it has it itself."""
    inputs, outputs = (
        tuple(
            replace(row, region=own.region, offset=own.offset)
            for row, own in zip(those, these, strict=True)
        )
        for those, these in ((theirs.inputs, ours.inputs), (theirs.outputs, ours.outputs))
    )
    return replace(ours, inputs=inputs, outputs=outputs, name=theirs.name)


def decided(
    faults: Faults,
    theirs: Judged,
    begun: Made,
    candidates: list[Judged],
    configuration: EthosUConfiguration,
    order: Order,
) -> Found:
    """Return the best candidate that may be taken; Vela's program where none may.

    One whose numbers are not those of Vela's code comes last, if it may come at all.
    """
    must = configuration.generator is Generator.OWN
    tried: list[Rejected] = []
    others: list[tuple[Judged, str]] = []
    for candidate in sorted(candidates, key=lambda row: order(row.cost)):
        why = None if must else _dearer(candidate.cost, theirs.cost)
        why = why or faults.of(candidate, begun.kept)
        if why is None:
            reason = "it was asked for" if must else "no worse in cycles and memory"
            choice = CodeChoice(Verdict.TAKEN, reason, theirs.cost)
            return _taken(candidate, choice, begun, tried)
        if why.verdict is Verdict.DIFFERS and begun.may_differ:
            others.append((candidate, why.reason))
        else:
            tried.append(why)
    if others:
        candidate, differs = others[0]
        reason = f"the reference's numbers are not those of Vela's code: {differs}"
        choice = CodeChoice(Verdict.CORRECTED, reason, theirs.cost)
        return _taken(candidate, choice, begun, tried)
    verdict = tried[0].verdict if tried else Verdict.REFUSED
    reason = f"Mizzen's own is not taken: {tried[0].reason}" if tried else "there is no other"
    best = candidates[0].cost if candidates else None
    choice = CodeChoice(verdict, reason, theirs.cost, best, tuple(tried), begun.said)
    return Found(theirs.program, theirs.timed, choice)


def _taken(candidate: Judged, choice: CodeChoice, begun: Made, tried: list[Rejected]) -> Found:
    found = replace(choice, own=candidate.cost, tried=tuple(tried), operations=begun.said)
    return Found(candidate.program, candidate.timed, found, candidate.schedule)


def _dearer(ours: StreamCost, theirs: StreamCost) -> Rejected | None:
    """Return in what a program is no better than another; None if it is better."""
    what = worse(ours, theirs) or ("" if is_better(ours, theirs) else "no better in anything")
    return Rejected(Verdict.DEARER, what) if what else None
