"""Take the rewrites of a sequence that pay, by what its operations cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.arrange.orientation import (
    Estimate,
    Flips,
    Orientation,
    OrientationCosts,
    cheapest,
)
from mizzen.targets.ethos_u.generator.arrange.swap import regions, swap
from mizzen.targets.ethos_u.generator.arrange.variants import (
    EXCHANGE,
    Variant,
    variants_of,
    without,
)
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.generator.tuned import ARRANGING_ROUNDS, LEAST_GAIN
from mizzen.targets.ethos_u.machine.config import Accelerator

Judge = Callable[[Sequence], float]
"""What a whole sequence costs once it is scheduled."""
Rewrites = Callable[[Sequence, int], Iterator[Variant]]
"""Rewrites of an operation by its index."""


@dataclass(frozen=True, slots=True)
class ArrangeStep:
    """What was done, and to which operators of the network."""

    what: str
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Arranged:
    """A sequence, and what was done to the one that it was made of, step by step."""

    sequence: Sequence
    steps: tuple[ArrangeStep, ...]


def best(
    sequence: Sequence, accelerator: Accelerator, estimate: Estimate, judge: Judge | None = None
) -> Arranged:
    """Return the sequence that costs least of those that rewrites reach one after another.

    estimate  of one operation; chooses among its rewrites, and what has height and width exchanged
    judge     of whole sequences; permits each step that was chosen. Without one estimates decide
    """
    costs = OrientationCosts(estimate)
    first = _Rewriting(accelerator=accelerator, costs=costs, judge=judge, base=sequence)
    first.rewrite(without)
    searches = [first, replace(first)]
    searches[1].turn()
    for search in searches:
        search.run()
    cheapest_search = min(searches, key=_Rewriting.cost)
    arranged = (
        _turned(cheapest_search.base, cheapest_search.flips) if cheapest_search.steps else sequence
    )
    return Arranged(arranged, cheapest_search.steps)


@dataclass(slots=True)
class _Rewriting:
    """A sequence in which nothing is exchanged yet, and which operations are to be.

    judged   what the judge said of it; None before it was asked
    whole    what operations of a sequence cost, of the one that was asked for last
    settled  for which sequence and exchanges the last choice was made
    """

    accelerator: Accelerator
    costs: OrientationCosts
    judge: Judge | None
    base: Sequence
    flips: Flips = frozenset()
    steps: tuple[ArrangeStep, ...] = ()
    judged: float | None = None
    whole: Orientation | None = None
    settled: tuple[Sequence, Flips] | None = None

    def cost(self) -> float:
        """Return what the sequence costs, as the judge says if there is one."""
        if self.judge is None:
            return self._oriented().total(self.flips)
        if self.judged is None:
            self.judged = self.judge(_turned(self.base, self.flips))
        return self.judged

    def run(self) -> None:
        """Rewrite and exchange by turns, as long as one of them brings something."""
        for _ in range(ARRANGING_ROUNDS):
            before = len(self.steps)
            self.rewrite(self._variants)
            self.turn()
            if len(self.steps) == before:
                break

    def rewrite(self, rewrites: Rewrites) -> None:
        """Try rewrites of every operation, and take the best of each."""
        index = 0
        while index < len(self.base.operations):
            index += self._rewrite(index, rewrites)

    def _variants(self, sequence: Sequence, index: int) -> Iterator[Variant]:
        return variants_of(sequence, index, self.accelerator)

    def _rewrite(self, index: int, rewrites: Rewrites) -> int:
        """Return how many operations there are then in the place of one."""
        variants = list(rewrites(self.base, index))
        if not variants:
            return 1
        whole = self._oriented()
        own = whole.cost([index], self.flips)
        choices: list[tuple[float, Variant, Flips, int]] = []
        for variant in variants:
            count = 1 + len(variant.sequence.operations) - len(self.base.operations)
            other = whole.rewritten(variant.sequence, index, count)
            for flips in _moved(self.flips, index, count):
                if other.cost(range(index, index + count), flips) < own:
                    choices.append((other.total(flips), variant, flips, count))
        if not choices:
            return 1
        here = whole.total(self.flips)
        for cost, variant, flips, count in sorted(choices, key=lambda choice: choice[0]):
            if here - cost < (LEAST_GAIN * here if count else 0.0):
                continue
            step = self._step(variant.what, variant.operations)
            if self._take(variant.sequence, flips, step):
                return count
        return 1

    def _oriented(self) -> Orientation:
        """Return what operations of the sequence cost; made once for each sequence."""
        if self.whole is None or self.whole.sequence is not self.base:
            self.whole = Orientation(self.base, self.costs)
        return self.whole

    def turn(self) -> None:
        """Choose anew which operations have height and width exchanged, if anything changed."""
        before = self.settled
        if before is not None and before[0] is self.base and before[1] == self.flips:
            return
        starts = (frozenset(region) for region in regions(self.base))
        whole = self._oriented()
        flips = cheapest(whole, self.flips, starts)
        here, cost = whole.total(self.flips), whole.total(flips)
        if here - cost >= LEAST_GAIN * here:
            step = self._step(EXCHANGE, sorted(flips ^ self.flips))
            self._take(self.base, flips, step)
        self.settled = self.base, self.flips

    def _step(self, what: str, operations: tuple[int, ...] | list[int]) -> ArrangeStep:
        origins = (self.base.operations[index].origin for index in operations)
        return ArrangeStep(what, tuple(dict.fromkeys(origins)))

    def _take(self, base: Sequence, flips: Flips, step: ArrangeStep) -> bool:
        """Go on with another sequence if the judge permits; whether it does."""
        if self.judge is not None:
            before, judged = self.cost(), self.judge(_turned(base, flips))
            if judged >= before:
                return False
            self.judged = judged
        self.base, self.flips, self.steps = base, flips, (*self.steps, step)
        return True


def _moved(flips: Flips, index: int, count: int) -> Iterator[Flips]:
    """Return which are exchanged where `count` operations have come for one.

    None of them, all, or the last of several, which may be what the others prepare for.
    """
    others = frozenset(flip if flip < index else flip + count - 1 for flip in flips - {index})
    yield others
    if count:
        yield others | frozenset(range(index, index + count))
    if count > 1:
        yield others | {index + count - 1}


def _turned(base: Sequence, flips: Flips) -> Sequence:
    turned = swap(base, sorted(flips)) if flips else base
    assert turned is not None, "what costs something can be"
    return turned
