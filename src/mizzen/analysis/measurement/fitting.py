"""Fit what is not known of a system to counts: least squares in the logarithm of cycles.

The model is asked again and again with other memories (Levenberg and Marquardt's steps with
differences as derivatives, from several places). A weak prior keeps a number that the
counts do not tell where the system configuration has it, and the curvature says how well each is
told. One that may as well be half or double is left as it was, and called not told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mizzen.analysis.measurement.memories import (
    LATENCY_STEP,
    Parameter,
    Quantity,
    parameters,
    with_values,
)
from mizzen.targets.ethos_u.judge.timing import Step, cycles_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Memory

Floats = npt.NDArray[np.float64]

MODEL_ERROR = 0.038
"""Mean of |log| of the model over Arm's counts, memories known. Ref: docs/explanation/timing.md."""
START_CYCLES = 358.0
"""What a start of the NPU takes besides its stream, at least as seen.

Ref: Arm ML Embedded Evaluation Kit, log of the use case of keyword spotting, NPU IDLE.
"""
PRIOR = math.log(8)
"""How far a number may well be from what the system configuration says, as a logarithm."""
TIMER_PRIOR = math.log(1000)
TOLD = math.log(2)
"""A number whose error is larger may as well be half or double."""
ROUNDS, TRIES = 8, 4
STEP = 0.08
"""Of the logarithm, for differences; the model has corners, which a smaller one falls between."""
LONGEST_STEP = 1.5
FACTORS = (0.125, 0.35, 2.8, 8.0)
"""Of a number, where a descent may begin."""
SETTLED = 1e-3
"""Of the sum of squares, gained in a round: then it ends."""
LARGEST_FACTOR = 1e6
"""Of an error: with it a number may be anything. Ref: `mizzen.boards.file_format`, `Factor`."""
LEAST_TO_HOLD_OUT = 4
"""Counts: with fewer, half of them tells nothing of the other half."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A count, and the programs that it is of.

    steps       of each program, as `judge.timing.steps_of` reads it
    measured    cycles of the NPU, or ticks of the log's timer
    spread      standard deviation over the mean, of several inferences
    inferences  that it is the mean of
    in_ticks    whether it is ticks
    """

    name: str
    steps: tuple[Sequence[Step], ...]
    measured: float
    spread: float = 0.0
    inferences: int = 1
    in_ticks: bool = False

    @property
    def error(self) -> float:
        """How far an estimate may well be off, as a logarithm: the model, the spread, the start."""
        return math.hypot(MODEL_ERROR, self.spread, START_CYCLES / self.measured)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit says of a number.

    value  that it has now: the one before where it is not told
    error  factor by which it may well be more or less; `LARGEST_FACTOR` where the counts say
           nothing
    told   whether the counts tell it
    """

    parameter: Parameter
    value: float
    error: float
    told: bool

    @property
    def at_bound(self) -> bool:
        """Whether it is as much, or as little, as is possible."""
        known = self.parameter
        return self.told and not known.least * 1.001 < self.value < known.most * 0.999


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Estimates over counts that were not fitted to: of each half, with the other's memories."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def better(self) -> bool:
        """Whether the fit is better than none on them."""
        return mean_error(self.after) < mean_error(self.before)


@dataclass(frozen=True, slots=True)
class Fit:
    """A fit.

    configuration  with the fitted memories
    before, after  estimates over counts, by sample
    held_out       None where there are too few counts
    """

    configuration: EthosUConfiguration
    fitted: tuple[Fitted, ...]
    samples: tuple[Sample, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    held_out: HeldOut | None

    @property
    def told(self) -> tuple[Fitted, ...]:
        """What the counts tell."""
        return tuple(each for each in self.fitted if each.told)


def worst(ratios: Sequence[float]) -> float:
    """Return the greatest deviation of estimates over counts, as a fraction."""
    return max(abs(ratio - 1) for ratio in ratios)


def median(ratios: Sequence[float]) -> float:
    """Return the median deviation, as a fraction."""
    return float(np.median([abs(ratio - 1) for ratio in ratios]))


def mean_error(ratios: Sequence[float]) -> float:
    """Return the mean of the logarithm's size."""
    return sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)


def fit(configuration: EthosUConfiguration, samples: Sequence[Sample]) -> Fit:
    """Fit the memories of a system to counts, of which there must be one at least."""
    held_out = _held_out(configuration, samples)
    search = _Search(configuration, tuple(samples), _known(configuration, samples))
    fitted = search.fitted()
    return Fit(
        search.with_values(fitted),
        fitted,
        tuple(samples),
        search.unfitted,
        search.ratios([each.value for each in fitted]),
        held_out,
    )


def _known(configuration: EthosUConfiguration, samples: Sequence[Sample]) -> tuple[Parameter, ...]:
    return parameters(configuration, timer=any(each.in_ticks for each in samples))


def _held_out(configuration: EthosUConfiguration, samples: Sequence[Sample]) -> HeldOut | None:
    """Fit to every second count, and ask for the others; then the other way round.

    Each half needs counts in ticks where the other has any: without, it knows no rate of the timer.
    So they are dealt out after all others, and a single one is left out.
    """
    dealt = sorted(samples, key=lambda sample: sample.in_ticks)
    if sum(sample.in_ticks for sample in dealt) == 1:
        dealt.pop()
    if len(dealt) < LEAST_TO_HOLD_OUT:
        return None
    known = _known(configuration, dealt)
    one, other = (_Search(configuration, tuple(dealt[first::2]), known) for first in (0, 1))
    before: list[float] = []
    after: list[float] = []
    for told, asked in ((one, other), (other, one)):
        before += asked.ratios(told.timer_alone())
        after += asked.ratios([each.value for each in told.fitted()])
    return HeldOut(tuple(before), tuple(after))


@dataclass(frozen=True)
class _Search:
    """A system with numbers to be found, and the counts that tell them."""

    configuration: EthosUConfiguration
    samples: tuple[Sample, ...]
    known: tuple[Parameter, ...]

    @cached_property
    def unfitted(self) -> tuple[float, ...]:
        """Estimates over counts without a fit, but for the timer's rate."""
        return self.ratios(self.timer_alone())

    def timer_alone(self) -> list[float]:
        """Return the numbers as they were, and the timer's rate that suits them best."""
        values = [each.before for each in self.known]
        if self.known[-1].quantity is Quantity.TIMER:
            logs = [
                math.log(ratio)
                for ratio, sample in zip(self.ratios(values), self.samples, strict=True)
                if sample.in_ticks
            ]
            values[-1] = self.known[-1].within(math.exp(-float(np.median(logs))))
        return values

    def ratios(self, values: Sequence[float]) -> tuple[float, ...]:
        """Return estimates over counts with numbers."""
        system = with_values(self.configuration, self.known, values)
        ticks = values[-1] if self.known[-1].quantity is Quantity.TIMER else 1.0
        return tuple(
            max(1.0, sum(cycles_of(steps, system) for steps in sample.steps))
            * (ticks if sample.in_ticks else 1.0)
            / sample.measured
            for sample in self.samples
        )

    def with_values(self, fitted: Sequence[Fitted]) -> EthosUConfiguration:
        """Return the system with fitted numbers."""
        return with_values(self.configuration, self.known, [each.value for each in fitted])

    def fitted(self) -> tuple[Fitted, ...]:
        """Fit; what is not told is left as it was, the least told first."""
        values = self.timer_alone()
        free = list(range(len(values)))
        errors = [math.inf] * len(values)
        values = self._begun(values, free)
        while free:
            values = self._descended(values, free)
            for place, error in zip(free, self._errors(values, free), strict=True):
                errors[place] = error
            loose = max(free, key=lambda place: errors[place])
            if errors[loose] <= TOLD:
                break
            free.remove(loose)
            values[loose] = self.known[loose].before
        # What is left as it was may be otherwise all the same, and another number stands for it.
        beside = self._errors(values, range(len(values)))
        errors = [max(pair) for pair in zip(errors, beside, strict=True)]
        return tuple(
            Fitted(parameter, value, _factor(error), place in free)
            for place, (parameter, value, error) in enumerate(
                zip(self.known, values, errors, strict=True)
            )
        )

    def _begun(self, values: list[float], free: Sequence[int]) -> list[float]:
        """Return the best of descents: from where it is, and with each memory to blame alone."""
        memories = dict.fromkeys(self.known[place].memory for place in free)
        starts = [self._around(values, free, blamed) for blamed in memories if blamed]
        found = [self._descended(start, free) for start in (values, *starts)]
        return min(found, key=lambda each: self._cost(each, free))

    def _around(self, values: list[float], free: Sequence[int], blamed: Memory) -> list[float]:
        """Return where to begin: the best of some values of a memory's numbers in turn."""
        values, cost = list(values), self._cost(values, free)
        for place in free:
            known = self.known[place]
            for factor in FACTORS if known.memory is blamed else ():
                tried = [*values]
                tried[place] = known.within(_moved(known, values[place], math.log(factor)))
                if (sought := self._cost(tried, free)) < cost:
                    values, cost = tried, sought
        return values

    def _residuals(self, values: Sequence[float], free: Sequence[int]) -> Floats:
        """Return deviations over errors: of counts, and of numbers from what they were."""
        counts = [
            math.log(ratio) / sample.error
            for ratio, sample in zip(self.ratios(values), self.samples, strict=True)
        ]
        return np.array([*counts, *(_from_before(self.known[i], values[i]) for i in free)])

    def _cost(self, values: Sequence[float], free: Sequence[int]) -> float:
        return float(np.sum(np.square(self._residuals(values, free))))

    def _descended(self, values: list[float], free: Sequence[int]) -> list[float]:
        """Step downhill until nothing is gained."""
        residuals = self._residuals(values, free)
        cost, damping = float(residuals @ residuals), 1e-2
        for _ in range(ROUNDS):
            slopes = self._slopes(values, residuals, free)
            before = cost
            for _ in range(TRIES):
                step = _step(slopes, residuals, damping)
                tried = list(values)
                for place, change in zip(free, step, strict=True):
                    known = self.known[place]
                    tried[place] = known.within(_moved(known, values[place], float(change)))
                there = self._residuals(tried, free)
                if (sought := float(there @ there)) < cost:
                    values, residuals, cost, damping = tried, there, sought, damping / 3
                    break
                damping *= 8
            if before - cost <= SETTLED * before:
                break
        return values

    def _slopes(self, values: list[float], residuals: Floats, free: Sequence[int]) -> Floats:
        """Return what each residual changes by with each number's logarithm."""
        columns: list[Floats] = []
        for place in free:
            known = self.known[place]
            here = _place(known, values[place])
            moved = known.within(_moved(known, values[place], STEP))
            if _place(known, moved) - here < STEP / 2:  # The bound is near, and may be no step off.
                moved = known.within(_moved(known, values[place], -STEP))
            tried = list(values)
            tried[place] = moved
            distance = _place(known, moved) - here
            columns.append((self._residuals(tried, free) - residuals) / distance)
        return np.stack(columns, axis=1)

    def _errors(self, values: list[float], free: Sequence[int]) -> list[float]:
        """Return how well each number is told, as a logarithm: from the curvature.

        Where estimates are further off than they may well be, so is what follows from them.
        """
        residuals = self._residuals(values, free)
        slopes = self._slopes(values, residuals, free)
        counts = residuals[: len(self.samples)]
        beyond = max(1.0, float(counts @ counts) / len(counts))
        variances = np.diag(np.linalg.inv(slopes.T @ slopes)) * beyond
        return [math.sqrt(max(float(variance), 0.0)) for variance in variances]


def _step(slopes: Floats, residuals: Floats, damping: float) -> Floats:
    curvature = slopes.T @ slopes
    damped = curvature + damping * np.diag(np.diag(curvature))
    step = np.linalg.solve(damped, -slopes.T @ residuals)
    return np.clip(step, -LONGEST_STEP, LONGEST_STEP).astype(np.float64)


def _place(known: Parameter, value: float) -> float:
    """Return where a value is, as a logarithm; latencies begin at 0."""
    return math.log(value + (LATENCY_STEP if known.quantity is Quantity.LATENCY else 0.0))


def _moved(known: Parameter, value: float, by: float) -> float:
    """Return the value so far away; a latency is another whole number of cycles."""
    if known.quantity is not Quantity.LATENCY:
        return value * math.exp(by)
    moved = (value + LATENCY_STEP) * math.exp(by) - LATENCY_STEP
    if abs(moved - value) < LATENCY_STEP and abs(by) >= STEP:
        moved = value + math.copysign(LATENCY_STEP, by)
    return round(moved)


def _from_before(known: Parameter, value: float) -> float:
    prior = TIMER_PRIOR if known.quantity is Quantity.TIMER else PRIOR
    return (_place(known, value) - _place(known, known.before)) / prior


def _factor(error: float) -> float:
    return math.exp(error) if error < math.log(LARGEST_FACTOR) else LARGEST_FACTOR
