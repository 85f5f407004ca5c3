"""How near one network's numbers are to another's, and which of several are clearly nearest."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from mizzen.artifact.interface import Array

Sketch = npt.NDArray[np.float64]
"""Some elements of a tensor over all inferences, always the same ones for a shape."""

SKETCHED = 4096
"""Elements of an inference that are compared; a network may have hundreds of results of a shape."""

CLEARLY = 3.0
"""How many times nearer than any other what is known by its numbers must be: 10 dB."""


def sketch(tensors: Sequence[Array]) -> Sketch:
    """Return the sketch of a tensor, an array an inference."""
    size = tensors[0].size
    flat = [tensor.reshape(-1).astype(np.float64) for tensor in tensors]
    if size > SKETCHED:
        places = np.random.default_rng(size).integers(0, size, SKETCHED)
        flat = [each[places] for each in flat]
    return np.stack(flat)


def distance(ours: Sketch, theirs: Sketch) -> float:
    """Return how far numbers are from others, relative to these; infinite if they are all zero."""
    signal = float(np.square(theirs).sum())
    noise = float(np.square(ours - theirs).sum())
    known = math.isfinite(signal) and math.isfinite(noise) and signal > 0
    return math.sqrt(noise / signal) if known else math.inf


def nearest(distances: Sequence[float], contents: Sequence[Hashable], most: float) -> int | None:
    """Return which is within `most`, and clearly nearer than all that have other contents."""
    best = min(range(len(distances)), key=distances.__getitem__, default=None)
    if best is None or distances[best] > most:
        return None
    others = [far for far, held in zip(distances, contents, strict=True) if held != contents[best]]
    return best if min(others, default=math.inf) >= CLEARLY * distances[best] else None
