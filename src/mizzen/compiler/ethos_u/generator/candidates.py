"""Sequences that do the same, in the order in which they are worth scheduling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from mizzen.targets.ethos_u import arrange
from mizzen.targets.ethos_u.cascade import cascades, within
from mizzen.targets.ethos_u.config import EthosUConfiguration, Search
from mizzen.targets.ethos_u.matrix import with_written_products
from mizzen.targets.ethos_u.operations import Copy, Role, Sequence, maps_read
from mizzen.targets.ethos_u.schedule import Estimator

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
    sequence = with_written_products(arrange.merged(sequence), accelerator)
    estimate = Estimator(configuration, sequence.tensors)
    best = arrange.best(sequence, accelerator, estimate).sequence
    planes = arrange.in_planes(best, accelerator, estimate)
    return _different((planes, best, sequence))


def candidates(rows: list[Sequence], configuration: EthosUConfiguration) -> Iterator[Sequence]:
    """Yield what is worth scheduling for the sake of cycles, the best first as far as is known.

    rows  as `arranged` gives them
    """
    if not configuration.mode.spills:
        yield from rows
        if configuration.search is Search.THOROUGH:
            yield from (row.sequence for row in cascades(rows[-1]))
        return
    cache = configuration.arena_cache_size_bytes
    goals = [int(share * cache) for share in CACHE_SHARES]
    # Windows over rows that are read as channels, and planes, cannot be done by rows.
    striped = chain.from_iterable(within(row, goals, IN_ARENA) for row in reversed(rows))
    pairs = zip_longest((row.sequence for row in striped), rows)
    yield from _different(row for pair in pairs for row in pair if row is not None)


def rounds(rows: list[Sequence], configuration: EthosUConfiguration) -> Iterator[list[Sequence]]:
    """Yield the candidates: first those to schedule, then others for where none of them is taken.

    rows  as `arranged` gives them
    """
    every = list(candidates(rows, configuration))
    is_short = len(rows[-1].operations) <= SHORT
    if is_short or configuration.mode.spills or configuration.search is Search.THOROUGH:
        yield every
        return
    costs = [_estimated(row, configuration) for row in every]
    most = FAR * min(costs)
    near = [row for row, cost in zip(every, costs, strict=True) if cost <= most]
    far = [row for row, cost in zip(every, costs, strict=True) if cost > most]
    yield near
    if far:
        yield far


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
