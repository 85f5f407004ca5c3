"""Which tensor of the model each feature map is, and how the two differ.

A compiler may compute several layers in one operation, so the last map of a layer's commands is its
own tensor or that of one after it. Which one, equality says; where nothing is equal, the one that
is most alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mizzen.analysis.comparison.layers import Key, Layer, Layers
from mizzen.analysis.comparison.tally import Array, Tally
from mizzen.compiler.proof.written import FUSED_BEHIND, SAYS_SOMETHING, Written

Values = Mapping[Key, Array]
"""Tensors of the reference, `[N, *shape]`."""

Place = tuple[int, int]
"""An NPU operator, and the layer whose commands wrote."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a layer's map is.

    certain  whether it is known to be that tensor; else it may be something on the way to it
    """

    key: Key
    tally: Tally
    certain: bool


@dataclass(eq=False)
class Matcher:
    """Counts, over all inferences, how maps differ from the tensors that they may be.

    hops  how many layers after another its commands may compute
    """

    layers: Layers
    hops: int = FUSED_BEHIND
    _tallies: dict[Place, dict[tuple[Key, int], Tally]] = field(
        default_factory=dict[Place, dict[tuple[Key, int], Tally]]
    )
    _several: set[Place] = field(default_factory=set[Place])

    def add(self, place: int, written: Written, values: Values) -> None:
        """Count what a layer's commands wrote in one inference of a batch."""
        tallies = self._tallies.setdefault((place, written.operator), {})
        if len(written.maps) > 1:
            self._several.add((place, written.operator))
        for key, form, array in candidates(self.layers, written, values, self.hops):
            same = values[key] if _is_moved(array, values[key]) else array
            tallies.setdefault((key, form), Tally()).add(same, values[key])

    def found(self) -> dict[Place, Found]:
        """Return the tensor that each map is; maps that cannot be one are left out."""
        matched: dict[Place, Found] = {}
        for place, tallies in self._tallies.items():
            most = max((each.elements for each in tallies.values()), default=0)
            whole = [(key, each) for (key, _), each in tallies.items() if each.elements == most]
            if not whole:
                continue
            key, tally = min(whole, key=lambda pair: pair[1].share)
            certain = tally.share <= SAYS_SOMETHING and place not in self._several
            matched[place] = Found(key, tally, not tally.differing or certain)
        return matched


def _is_moved(array: Array, reference: Array) -> bool:
    """Whether a map has the tensor's elements in another order, as code of our own may turn it."""
    if np.array_equal(array, reference):
        return False
    ours, theirs = (np.sort(each.reshape(len(each), -1), axis=1) for each in (array, reference))
    return np.array_equal(ours, theirs)


def candidates(
    layers: Layers, written: Written, values: Values, hops: int = FUSED_BEHIND
) -> Iterator[tuple[Key, int, Array]]:
    """Return the tensors that maps may be, which of their forms it is, and the map as that."""
    for layer in layers.from_here(written.operator, hops):
        for key in layer.gives:
            if key in values:
                yield from ((key, form, array) for form, array in forms(written, values[key]))


def forms(written: Written, reference: Array) -> Iterator[tuple[int, Array]]:
    """Return maps as a tensor of the reference's shape and type, in each form that fits."""
    count, *shape = reference.shape
    dtype: np.dtype[Any] = reference.dtype
    yield from enumerate(written.as_tensor(tuple(shape), dtype, count))


def nearest(
    layers: Layers, maps: Iterator[Written], layer: Layer, key: Key, reference: Array
) -> Array | None:
    """Return the map that is most like a tensor of a layer; None if none can be it."""
    best: tuple[int, Array] | None = None
    for written in maps:
        if layer not in layers.from_here(written.operator, FUSED_BEHIND):
            continue
        for _, _, array in candidates(layers, written, {key: reference}):
            differing = int(np.count_nonzero(array != reference))
            if best is None or differing < best[0]:
                best = differing, array
    return None if best is None else best[1]
