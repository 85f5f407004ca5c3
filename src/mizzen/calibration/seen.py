"""What calibration data showed of every tensor, sample by sample, and what it did not show."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, Severity

Array = npt.NDArray[Any]
Sample = tuple[Array, ...]
"""An array for each input, of the input's shape."""

FEWEST_SAMPLES = 10
"""A number after n others of one kind is beyond all of them with a chance of 2 / (n + 1), 1 / (n +
1) at either end: of 9 inputs every fifth that follows has a tensor cut off, of 10 fewer."""

LONELY = 2.0
"""How many times the range of all other samples one may make it: as much costs them a bit."""

SHOWN = 5
"""Tensors that one warning names."""


@dataclass(eq=False)
class Track:
    """The least and the greatest number of a tensor in each sample."""

    lows: list[float] = field(default_factory=list[float])
    highs: list[float] = field(default_factory=list[float])

    @property
    def low(self) -> float:
        """The least of all."""
        return min(self.lows, default=0.0)

    @property
    def high(self) -> float:
        """The greatest of all."""
        return max(self.highs, default=0.0)

    @property
    def is_constant(self) -> bool:
        """Whether every number was the same."""
        return self.low == self.high

    def lonely(self) -> tuple[int, float] | None:
        """Return the sample that makes the range alone, and how many times that of the others.

        Ranges have zero in them, as those of integers do.
        """
        if len(self.lows) < FEWEST_SAMPLES:
            return None
        whole = _span(self.lows, self.highs)
        for index in {int(np.argmin(self.lows)), int(np.argmax(self.highs))}:
            rest = _span(_without(self.lows, index), _without(self.highs, index))
            if rest > 0 and whole / rest >= LONELY:
                return index, whole / rest
        return None


def _span(lows: Sequence[float], highs: Sequence[float]) -> float:
    return max(0.0, *highs) - min(0.0, *lows)


def _without(values: Sequence[float], index: int) -> list[float]:
    return [*values[:index], *values[index + 1 :]]


@dataclass(eq=False)
class Seen:
    """Every tensor of floating-point numbers in every sample of the data.

    inputs  names of those that the network is given
    """

    inputs: tuple[str, ...]
    tracks: dict[str, Track] = field(default_factory=dict[str, Track])
    samples: int = 0
    _digests: set[bytes] = field(default_factory=set[bytes])

    def add(self, sample: Sample, tensors: Mapping[str, Array]) -> None:
        """Take one sample, and what each tensor was."""
        self.samples += 1
        held = hashlib.sha256()
        for array in sample:
            held.update(array.tobytes())
        self._digests.add(held.digest())
        for name, array in tensors.items():
            if array.dtype.kind == "f" and array.size:
                track = self.tracks.setdefault(name, Track())
                finite = array[np.isfinite(array)]
                track.lows.append(float(finite.min(initial=math.inf)) if finite.size else 0.0)
                track.highs.append(float(finite.max(initial=-math.inf)) if finite.size else 0.0)

    @property
    def is_one_input(self) -> bool:
        """Whether several samples came, all alike."""
        return self.samples > 1 and len(self._digests) == 1


def findings(seen: Seen, sample_name: Callable[[int], str]) -> Iterator[Diagnostic]:
    """Say what the data does not show: W197 to W199."""
    constant = [name for name in seen.inputs if name in seen.tracks and _constant(seen, name)]
    if constant or seen.is_one_input:
        yield _says_nothing(seen, constant)
    if seen.samples < FEWEST_SAMPLES:
        yield Diagnostic(
            "W198",
            f"calibration must see at least {FEWEST_SAMPLES} inputs, and saw {seen.samples}: what "
            "follows goes beyond the range of a tensor with a chance of "
            f"{2 / (seen.samples + 1):.0%}",
            Severity.WARNING,
            help="calibrate with some dozens of real inputs",
        )
    if not constant:
        yield from _of_tensors(seen, sample_name)


def _constant(seen: Seen, name: str) -> bool:
    return seen.tracks[name].is_constant


def _says_nothing(seen: Seen, constant: Sequence[str]) -> Diagnostic:
    if constant:
        numbers = [f'"{name}" {seen.tracks[name].low:g}' for name in constant]
        came = f"{', '.join(numbers)} is all that came"
    else:
        came = f"all {seen.samples} that came are the same"
    return Diagnostic(
        "W197",
        f"calibration must see different inputs, and {came}: the ranges say nothing of others",
        Severity.WARNING,
        help="calibrate with real inputs; zeros, ones and noise have ranges of their own",
    )


def _of_tensors(seen: Seen, sample_name: Callable[[int], str]) -> Iterator[Diagnostic]:
    computed = {name: track for name, track in seen.tracks.items() if name not in seen.inputs}
    still = [f'"{name}" ({track.low:g})' for name, track in computed.items() if track.is_constant]
    if still:
        yield Diagnostic(
            "W199",
            f"a tensor must change under calibration to have a range, and {_named(still)} did not",
            Severity.WARNING,
            help="calibrate with inputs under which it changes: any other number saturates",
        )
    alone = [
        f'"{name}" ({times:.1f} times that of all others, by {sample_name(index)})'
        for name, track in seen.tracks.items()
        if (made := track.lonely()) is not None
        for index, times in (made,)
    ]
    if alone:
        yield Diagnostic(
            "W199",
            f"no single input must make the range of a tensor, and one does of {_named(alone)}",
            Severity.WARNING,
            help="leave that input out if it is not a real one, or cut outliers off with "
            "--calibration percentile",
        )


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
