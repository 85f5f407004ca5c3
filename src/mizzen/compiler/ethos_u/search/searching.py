"""Find the program of a sequence: the fastest, or the one in least memory.

Candidates are scheduled in the order of what is known of them, and judged by the timing model. One
with a hazard is passed over. How much is tried is counted in operations, never in time, so that the
same comes of the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mizzen.compiler.ethos_u.search.candidates import WORK, Budget, arranged, rounds
from mizzen.compiler.ethos_u.search.judging import Judged, judged
from mizzen.compiler.ethos_u.search.smallest import smallest
from mizzen.diagnostics import MizzenError, fail
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.generator.schedule import Effort, Limits, plain, plain_bytes, schedule
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Optimise, Search
from mizzen.targets.ethos_u.machine.program import Program

MOST_OPERATIONS = 8000
"""Of one NPU operator, products as a column each; scheduling more takes minutes."""
HAZARD = "E582"
"""The code of a program whose accesses nothing orders."""
REFINED = 2
"""Of all that was scheduled, what a thorough search schedules once more with greater effort."""

STAGING_ROOM = 1.25
"""Memory that U85 may take for constants that it fetches, over what tensors take in a schedule
without a search. At 1.5 a U-Net is 3 % faster and takes a fifth more."""
MORE_MEMORY_GAIN = 0.25
"""Share of the cycles that a program must save for each share of memory that it takes more."""


def searched(sequence: Sequence, configuration: EthosUConfiguration) -> Judged:
    """Return the best program of a sequence that was found.

    Raises:
        MizzenError: E579 for too many operations, E582 where all that was found has a hazard, and
            as scheduling and emitting do
    """
    require_few(sequence)
    arrangements, limit_bytes = arranged(sequence, configuration), plain_bytes(sequence)
    first = fastest(sequence, arrangements, configuration, limit_bytes)
    if configuration.optimise is Optimise.SIZE:
        return smallest(sequence, configuration, first)
    if not _may_stage_more(configuration):
        return first
    room_bytes = int(STAGING_ROOM * limit_bytes)
    roomy = fastest(sequence, arrangements, configuration, room_bytes)
    return roomy if _pays(roomy, first) else first


def plainly(sequence: Sequence, configuration: EthosUConfiguration) -> Judged:
    """Return the program without search: in the sequence's order, nothing fetched ahead.

    Raises as `searched`.
    """
    require_few(sequence)
    program = judged(plain(sequence, configuration), configuration)
    require_no_hazard(program.program)
    return program


def require_few(sequence: Sequence) -> None:
    """Refuse what would take too long to schedule. E579."""
    count = len(sequence.operations)
    if count > MOST_OPERATIONS:
        raise fail(
            "E579",
            f"an NPU operator must have at most {MOST_OPERATIONS} operations to be scheduled in "
            f"time, and has {count}",
            help="leave an operator of the network to the CPU with --ignore-ops, which parts it",
        )


def _may_stage_more(configuration: EthosUConfiguration) -> bool:
    """Whether constants are fetched by a U85 into the memory that tensors are in."""
    mode, is_u85 = configuration.mode, configuration.accelerator.arch is Arch.U85
    return is_u85 and not mode.spills and mode.constants is not mode.cache


def _pays(roomy: Judged, first: Judged) -> bool:
    """Whether a program saves enough cycles for what memory it takes more."""
    saved = _both(first) - _both(roomy)
    more_bytes = roomy.cost.memory_bytes - first.cost.memory_bytes
    return saved * first.cost.memory_bytes > MORE_MEMORY_GAIN * more_bytes * _both(first)


def fastest(
    sequence: Sequence,
    arrangements: list[Sequence],
    configuration: EthosUConfiguration,
    limit_bytes: int,
) -> Judged:
    """Return the fastest program that was found. E582 where all of them have a hazard.

    It takes no more memory than a limit, nor than the size of the arena cache that is asked for,
    where there is such a program.

    arrangements  of the sequence, as `arranged` gives them
    """
    if not configuration.mode.spills:
        limit_bytes = min(limit_bytes, configuration.arena_cache_size_bytes)
    budget = Budget(WORK[configuration.search], granted=True)
    limits = Limits(limit_bytes)
    for sequences in rounds(arrangements, configuration, limit_bytes):
        granted = [each for each in sequences if budget.grants(each)]
        programs = _sorted(_scheduled(granted, configuration, limits), configuration)
        if configuration.search is Search.THOROUGH:
            refined = _refined(programs, configuration, limits)
            programs = _sorted([*programs, *refined], configuration)
        for program in programs:
            if not hazard_of(program.program):
                return program
    last = judged(schedule(sequence, configuration), configuration)
    require_no_hazard(last.program)
    return last


def _sorted(programs: Iterable[Judged], configuration: EthosUConfiguration) -> list[Judged]:
    """Return the fastest first: of U85 by both models, of which either may be far from it."""
    is_u85 = configuration.accelerator.arch is Arch.U85
    return sorted(programs, key=lambda program: _both(program) if is_u85 else program.cost.cycles)


def _both(program: Judged) -> int:
    return program.cost.cycles + program.cost.vela_cycles


def _scheduled(
    sequences: Iterable[Sequence],
    configuration: EthosUConfiguration,
    limits: Limits,
    effort: Effort = Effort.FAST,
) -> Iterator[Judged]:
    for sequence in sequences:
        try:
            yield judged(schedule(sequence, configuration, limits, effort), configuration)
        except MizzenError:  # registers cannot say what it became
            continue


def _refined(
    programs: Iterable[Judged], configuration: EthosUConfiguration, limits: Limits
) -> Iterator[Judged]:
    """Yield the best once more, scheduled with greater effort."""
    sequences = [program.schedule.sequence for program in programs][:REFINED]
    return _scheduled(sequences, configuration, limits, Effort.THOROUGH)


def hazard_of(program: Program) -> str:
    """Return the first hazard of a program in words; empty where it has none."""
    findings = find_hazards(program).findings
    return findings[0].diagnostic.message if findings else ""


def require_no_hazard(program: Program) -> None:
    """Refuse a program with a hazard. E582."""
    hazard = hazard_of(program)
    if hazard:
        raise fail(
            HAZARD,
            f"accesses of a command stream must be ordered, and of what was made are not: {hazard}",
            help="this is a bug of Mizzen's generator: please report it with the network",
        )
