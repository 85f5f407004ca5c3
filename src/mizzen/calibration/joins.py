"""Concatenations of tensors of unlike ranges, whose one scale leaves the small ones few levels.

Detectors end so: boxes up to 640 beside scores up to 1 leave the scores one value of 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mizzen.calibration.seen import Seen
from mizzen.compiler.levels import Content, Remedy, Steps, lost
from mizzen.diagnostics import Diagnostic, Origin


@dataclass(frozen=True, slots=True)
class Joined:
    """A concatenation.

    contents  the tensors that it joins, with the names of the operators that compute them
    """

    result: str
    contents: Mapping[str, str]
    origin: Origin


def few_levels(join: Joined, seen: Seen, bits: int) -> Iterator[Diagnostic]:
    """Say which contents keep too few levels in the scale of all: W319."""
    whole = seen.tracks.get(join.result)
    if whole is None:
        return
    low, high = min(0.0, whole.low), max(0.0, whole.high)
    if low == high:
        return
    steps = Steps((high - low) / ((1 << bits) - 1), low, high, bits)
    for name, maker in join.contents.items():
        track = seen.tracks.get(name)
        if track is None or track.is_constant:
            continue
        content = Content(name, track.low, track.high, bits)
        left = steps.levels_of(content)
        if left < steps.levels_wanted(content):
            yield lost(content, left, steps, join.result, join.origin, _way(join, maker))


def _way(join: Joined, maker: str) -> Remedy:
    """Return the remedy: to end the network before the concatenation, or to scale in front."""
    makers = list(dict.fromkeys(filter(None, join.contents.values())))
    options = " ".join(f"--cut {name}" for name in makers)
    return Remedy(
        f"end the network before it, and let your program join: {options}; or scale the tensors to "
        "one range before they are joined (boxes divided by the size of the image)"
        if options and maker
        else "scale the tensors to one range before they are joined"
    )
