"""Elements at constant places along a dimension: parts, steps, copies, all backwards, any.

Many ranges of neighbours are looked up, few are joined.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mizzen.frontends.arrangement.lookup import MOST_RANGES, joined, taken
from mizzen.frontends.arrangement.movement import reshape, sliced, stepped, tiled
from mizzen.frontends.onnx.model import Array
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def picked(b: Builder, value: Value, axis: int, places: Array) -> Value:
    """Take places along an axis, at least one, counted from the front."""
    indices: list[int] = places.reshape(-1).tolist()
    first, count = indices[0], len(indices)
    steps = {after - before for before, after in pairwise(indices)}
    if steps <= {1}:
        return sliced(b, value, axis, first, count)
    if steps == {-1}:
        part = sliced(b, value, axis, indices[-1], count)
        return b("REVERSE", part, axis=axis, quantization=part.quantization)
    if len(steps) == 1 and steps != {0}:
        return _stepped(b, value, axis, indices)
    copies = _copies(indices, value.shape[axis])
    if copies:
        return _repeated(b, value, axis, copies)
    if np.count_nonzero(np.diff(places.reshape(-1)) != 1) < MOST_RANGES:
        return joined(b, value, axis, places)
    return taken(b, value, axis, 1, b.constant(indices, DType.INT32))


def picked_of_all(b: Builder, value: Value, dimensions: int, places: Array) -> Value:
    """Take places among all of the first dimensions, numbered with the last one fastest.

    The result has one dimension for them.
    """
    rest = value.shape[dimensions:]
    count = int(np.prod(value.shape[:dimensions]))
    return picked(b, reshape(b, value, (count, *rest)), 0, places)


def _stepped(b: Builder, value: Value, axis: int, indices: list[int]) -> Value:
    step = indices[1] - indices[0]
    if step > 0:
        return stepped(b, value, axis, indices[0], step, len(indices))
    forwards = stepped(b, value, axis, indices[-1], -step, len(indices))
    return b("REVERSE", forwards, axis=axis, quantization=forwards.quantization)


def _copies(indices: list[int], size: int) -> int:
    """Return how often each place is taken, one after the other; 0 where it is another order."""
    copies, rest = divmod(len(indices), size)
    if rest or indices != [place for place in range(size) for _ in range(copies)]:
        return 0
    return copies


def _repeated(b: Builder, value: Value, axis: int, copies: int) -> Value:
    before, after = value.shape[: axis + 1], value.shape[axis + 1 :]
    apart = reshape(b, value, (*before, 1, *after))
    whole = tiled(b, apart, (*before, copies, *after))
    return reshape(b, whole, (*before[:-1], before[-1] * copies, *after))
