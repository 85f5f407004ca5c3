"""Sequences that do the same, in the order in which they are worth scheduling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, zip_longest

from mizzen.targets.ethos_u.generator import arrange
from mizzen.targets.ethos_u.generator.cascade import cascades, peak_bytes, within
from mizzen.targets.ethos_u.generator.matrix import with_written_products
from mizzen.targets.ethos_u.generator.operations import Copy, Role, Sequence, maps_read
from mizzen.targets.ethos_u.generator.placement import in_lines
from mizzen.targets.ethos_u.generator.schedule import Estimator
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Feature, Search

WORK = {Search.FAST: 128, Search.THOROUGH: 1200}
"""Of all sequences that are scheduled for an NPU operator, the first of them left out."""
MANY = 64
"""Operations of a sequence each of which is twice the work that it is of a short one."""
FAR = 1.1
"""Estimated cycles over those of the best sequence, beyond which none has come out better."""
SHORT = 8
"""Operations of sequences that are all scheduled: what their constants take decides of so few."""
CACHE_SHARES = (0.85, 1.0, 0.7)
"""Of the cache, what maps of chains in stripes may take, beside constants that are fetched."""
ROOM_SHARES = (1.0, 0.8)
"""Of the memory that there is for all, what maps may take where they do not fit otherwise."""
IN_ARENA = (Role.INPUT, Role.OUTPUT, Role.STATE)
"""Tensors that lie in the arena where that is not in the memory of the cache."""


class Budget:
    """How much may be scheduled, in operations: counts, so that results do not depend on time.

    granted  whether the first sequence is, whatever it takes
    """

    def __init__(self, work: float, *, granted: bool) -> None:
        self._left = work
        self._free = granted

    def grants(self, sequence: Sequence) -> bool:
        """Whether a sequence may be scheduled; if so, it counts."""
        work = 0.0 if self._free else work_of(sequence)
        if work > self._left:
            return False
        self._left -= work
        self._free = False
        return True


def work_of(sequence: Sequence) -> float:
    """Return what it takes to schedule a sequence, in operations of a short one."""
    count = len(sequence.operations)
    return count * (1 + count / MANY)


def arranged(sequence: Sequence, configuration: EthosUConfiguration) -> list[Sequence]:
    """Return what a sequence is arranged to, the last first, and it itself last."""
    accelerator = configuration.accelerator
    sequence = arrange.merged(arrange.needed(sequence))
    if accelerator.arch is not Arch.U85:  # it multiplies maps, and has another order of weights
        sequence = with_written_products(sequence, accelerator)
    estimate = Estimator(configuration, sequence.tensors)
    best = arrange.best(sequence, accelerator, estimate).sequence
    planes = arrange.in_planes(best, accelerator, estimate)
    rows = _different((planes, best, sequence))
    if accelerator.arch is Arch.U85:
        rows = [arrange.transferred(row) for row in rows]
    return [arrange.chained(row) for row in rows] if _may_chain(configuration) else rows


def _may_chain(configuration: EthosUConfiguration) -> bool:
    is_u85 = configuration.accelerator.arch is Arch.U85
    return is_u85 and Feature.CHAINING not in configuration.disabled


def candidates(
    rows: list[Sequence], configuration: EthosUConfiguration, limit_bytes: int
) -> Iterator[Sequence]:
    """Yield what is worth scheduling for the sake of cycles, the best first as far as is known.

    rows         as `arranged` gives them
    limit_bytes  of the arena, where maps and constants that are fetched share one memory; what
                 does not fit by itself is done in stripes
    """
    if not configuration.mode.spills:
        for row in rows:
            if peak_bytes(row) <= limit_bytes:
                yield row
                continue
            yield from _striped(row, limit_bytes)
            if configuration.accelerator.arch is Arch.U85 and _may_fit(row, limit_bytes):
                yield row
        if configuration.search is Search.THOROUGH:
            yield from (row.sequence for row in cascades(rows[-1]))
        return
    cache = configuration.arena_cache_size_bytes
    goals = [int(share * cache) for share in CACHE_SHARES]
    # Windows over rows that are read as channels, and planes, cannot be done by rows.
    striped = chain.from_iterable(within(row, goals, IN_ARENA) for row in reversed(rows))
    pairs = zip_longest((row.sequence for row in striped), rows)
    yield from _different(row for pair in pairs for row in pair if row is not None)


def _striped(row: Sequence, limit_bytes: int) -> Iterator[Sequence]:
    goals = [int(share * limit_bytes) for share in ROOM_SHARES]
    return (found.sequence for found in within(row, goals, ()))


def rounds(
    rows: list[Sequence], configuration: EthosUConfiguration, limit_bytes: int
) -> Iterator[list[Sequence]]:
    """Yield the candidates: first those to schedule, then others for where none of them is taken.

    rows, limit_bytes  as `candidates` takes them
    """
    return (found for found in _rounds(rows, configuration, in_lines(limit_bytes)) if found)


def _rounds(
    rows: list[Sequence], configuration: EthosUConfiguration, limit_bytes: int
) -> Iterator[list[Sequence]]:
    every = list(candidates(rows, configuration, limit_bytes))
    if configuration.mode.spills:
        yield every
        return
    if configuration.search is Search.THOROUGH or not every:
        yield [*every, *_short_of_room(rows, limit_bytes)] or rows
        return
    if len(rows[-1].operations) <= SHORT:
        yield every
    else:
        yield from _by_estimates(every, configuration)
    yield [*_short_of_room(rows, limit_bytes)]


def _short_of_room(rows: list[Sequence], limit_bytes: int) -> Iterator[Sequence]:
    """Yield what may fit in other layouts than the usual, and what leaves more for constants."""
    for row in rows:
        taken_bytes = peak_bytes(row)
        if taken_bytes > limit_bytes:
            if _may_fit(row, limit_bytes):
                yield row
        elif taken_bytes > min(ROOM_SHARES) * limit_bytes:
            yield from _striped(row, limit_bytes)


def _may_fit(row: Sequence, limit_bytes: int) -> bool:
    """Whether tensors fit a limit if none has channels that are padded to whole bricks."""
    tensors = tuple(replace(tensor, layout=Layout.NHWC) for tensor in row.tensors)
    return peak_bytes(replace(row, tensors=tensors)) <= limit_bytes


def _by_estimates(
    every: list[Sequence], configuration: EthosUConfiguration
) -> Iterator[list[Sequence]]:
    """Yield first what is estimated to be about as fast as the best, then the others."""
    costs = [_estimated(row, configuration) for row in every]
    most = FAR * min(costs)
    yield [row for row, cost in zip(every, costs, strict=True) if cost <= most]
    yield [row for row, cost in zip(every, costs, strict=True) if cost > most]


def _estimated(sequence: Sequence, configuration: EthosUConfiguration) -> float:
    """Return what the operations of a sequence cost, each by itself."""
    estimate = Estimator(configuration, sequence.tensors)
    total = 0.0
    for row in sequence.operations:
        maps = () if isinstance(row, Copy) else (*maps_read(row), row.ofm)
        total += estimate(row, [sequence.tensors[map_.tensor].layout for map_ in maps])
    return total


def _different(rows: Iterable[Sequence]) -> list[Sequence]:
    return list({id(row): row for row in rows}.values())
