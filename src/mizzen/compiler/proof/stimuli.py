"""Inputs that tell: whatever a defect depends on, one of them should show it.

Four kinds take turns: any integer; small values around zero, which deep networks do not saturate;
the two ends of the range, which saturate; an impulse on zeros, which shows where things lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

WIDE_LIMIT = 1 << 15
"""Largest magnitude for integers of 32 bits and more: sums of some of them keep within 32 bits."""

SMALL_PART = 16
"""Values around zero have a standard deviation of the range through this."""

MOST_DEVIATIONS = 4
"""Standard deviations of plausible values from the middle of the range to its ends: there are the
extremes of some ten thousand numbers, of which ranges are calibrated."""

REALS = "fc"
"""Kinds of types that are no integers: complex numbers are drawn on the real axis."""


@dataclass(frozen=True, slots=True)
class Stimulus:
    """What an input may be.

    shape      of one inference
    low, high  its least and largest value; of real numbers about, else exactly
    zero       what stands for zero
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float
    zero: float = 0


Kind = Callable[[Stimulus, np.random.Generator], Array]
"""Draws one inference of an input."""


def stimulus(shape: tuple[int, ...], dtype: npt.DTypeLike, zero: float = 0) -> Stimulus:
    """Return the values that a tensor may have, as far as its type says."""
    type_: np.dtype[Any] = np.dtype(dtype)
    if type_ == np.bool_:
        return Stimulus(shape, type_, 0, 1)
    if type_.kind in REALS:
        return Stimulus(shape, type_, -4.0, 4.0)
    info = np.iinfo(type_)
    if type_.itemsize > 2:
        return Stimulus(shape, type_, max(-WIDE_LIMIT, int(info.min)), WIDE_LIMIT)
    return Stimulus(shape, type_, int(info.min), int(info.max), zero)


def stimuli(inputs: Sequence[Stimulus], count: int, seed: int) -> list[Array]:
    """Return `count` inferences of the inputs, `[count, *shape]` each; the same for the same seed.

    All inputs of an inference are of one kind, but the first is an impulse alone: others then
    are any integers, or an operator with two inputs would compute of zeros only.
    """
    return _made(inputs, count, seed, _KINDS)


def plausible(inputs: Sequence[Stimulus], count: int, seed: int) -> list[Array]:
    """Return `count` inferences `[count, *shape]` of numbers as a sensor might give them.

    Most lie around the middle, and hardly one reaches an end: what tells of a defect
    says nothing of accuracy.
    """
    return _made(inputs, count, seed, (_around_the_middle,))


def _made(inputs: Sequence[Stimulus], count: int, seed: int, kinds: Sequence[Kind]) -> list[Array]:
    rng = np.random.default_rng(seed)
    made = [np.empty((count, *each.shape), each.dtype) for each in inputs]
    for index in range(count):
        for place, (given, array) in enumerate(zip(inputs, made, strict=True)):
            kind = kinds[index % len(kinds)]
            make = _any if kind is _impulse and place else kind
            array[index] = np.clip(make(given, rng), given.low, given.high).astype(given.dtype)
    return made


def _any(given: Stimulus, rng: np.random.Generator) -> Array:
    if given.dtype.kind in REALS:
        return rng.uniform(given.low, given.high, given.shape)
    return rng.integers(int(given.low), int(given.high), given.shape, endpoint=True)


def _ends(given: Stimulus, rng: np.random.Generator) -> Array:
    return np.where(rng.integers(0, 2, given.shape, dtype=np.int8) > 0, given.high, given.low)


def _impulse(given: Stimulus, rng: np.random.Generator) -> Array:
    values = np.full(given.shape, given.zero)
    if values.size:
        values.flat[int(rng.integers(values.size))] = given.high
    return values


def _small(given: Stimulus, rng: np.random.Generator) -> Array:
    values = rng.normal(given.zero, (given.high - given.low) / SMALL_PART, given.shape)
    return values if given.dtype.kind in REALS else np.rint(values)


def _around_the_middle(given: Stimulus, rng: np.random.Generator) -> Array:
    if given.dtype.kind == "b":
        return _any(given, rng)
    middle, deviation = (
        (given.low + given.high) / 2,
        (given.high - given.low) / (2 * MOST_DEVIATIONS),
    )
    values = rng.normal(middle, deviation, given.shape)
    return values if given.dtype.kind in REALS else np.rint(values)


_KINDS: tuple[Kind, ...] = (_any, _small, _ends, _impulse)


def is_extreme(index: int) -> bool:
    """Whether an inference of those that `stimuli` makes is of the two ends of the range alone."""
    return _KINDS[index % len(_KINDS)] is _ends
