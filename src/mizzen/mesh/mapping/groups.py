"""Groups: which chips compute which layers, each chip its own part of every layer of its group.

A group is a run of layers on some chips. The chips cut every layer of it at the same places: into
`rows` x `columns` parts of the image and `channels` parts of the output channels, one a chip, so
that between the chips of a group only the rims of windows travel, or what convolutions need of the
other channels. For a period, dynamic programming over layers and chips finds the groups whose chips
have elements and links for them with the least traffic between chips.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mizzen.mesh.mapping.choosing import Options, choice_of, least_traffic
from mizzen.mesh.mapping.options import Solver
from mizzen.mesh.mapping.splits import Choices, Floats, Ints
from mizzen.mesh.mapping.stages import Problem, bisect
from mizzen.mesh.network.network import CHANNEL, HEIGHT, WIDTH, Layer, LayerKind

PARTS = (1, 2, 3, 4, 6, 7, 8)
"""Into how many parts chips cut an axis."""
MOST_CHIPS = 12
"""Chips of a group at most."""
PRECISION = 1.01
"""Ratio of two periods that are told apart."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How the chips of a group cut each layer."""

    rows: int
    columns: int
    channels: int

    @property
    def chips(self) -> int:
        """How many chips that takes."""
        return self.rows * self.columns * self.channels


@dataclass(frozen=True, slots=True)
class Group:
    """Layers from `first` up to `last` on the chips of a cut; the split of each, by index."""

    first: int
    last: int
    cut: Cut
    picks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a replica, in order; the time of the slowest tile."""

    groups: tuple[Group, ...]
    period_s: float

    @property
    def chips(self) -> int:
        """How many chips they have together."""
        return sum(group.cut.chips for group in self.groups)


@dataclass(frozen=True, slots=True)
class Chips:
    """What a replica has: chips, elements on each, bytes a second into one over its links."""

    count: int
    elements: int
    link_bytes_per_s: float


def cuts_of(chips: int) -> list[Cut]:
    """Return the cuts for at most so many chips, the fewest first."""
    most = min(chips, MOST_CHIPS)
    every = [Cut(*parts) for parts in itertools.product(PARTS, repeat=3)]
    return sorted((cut for cut in every if cut.chips <= most), key=lambda cut: cut.chips)


class GroupSearch:
    """Finds the groups of least period, and those of least traffic for a period.

    Arrays over cuts have the order of `cuts`.
    """

    def __init__(self, problem: Problem, chips: Chips) -> None:
        self.problem, self.chips = problem, chips
        self.cuts = cuts_of(chips.count)
        self.rows = np.array([cut.rows for cut in self.cuts])
        self.columns = np.array([cut.columns for cut in self.cuts])
        self.channels = np.array([cut.channels for cut in self.cuts])
        self.counts = self.rows * self.columns * self.channels
        self.aligned = [
            [_aligned(problem, layer, cut) for cut in self.cuts]
            for layer in range(len(problem.choices))
        ]

    def least(self, crossing: float) -> Groups | None:
        """Return the groups of least period; None where the network does not fit.

        As much as `crossing` links carry in a period may come into a chip.
        """
        choices = self.problem.choices
        high = sum(float(one.seconds.max()) for one in choices)
        low = max(float(one.seconds.min()) for one in choices)
        return bisect(lambda period: self.within(period, crossing), low, high * 4, PRECISION)

    def within(self, period_s: float, crossing: float) -> Groups | None:
        """Return the groups of least traffic that keep a period; None where there are none."""
        layers, chips = len(self.problem.choices), self.chips.count
        cost = np.full((layers + 1, chips + 1), np.inf)
        cost[0, 0] = 0
        came: dict[tuple[int, int], tuple[int, Cut]] = {}
        fewest = self._fewest(period_s)
        budget = self.chips.link_bytes_per_s * crossing * period_s
        for first in range(layers):
            if not np.isfinite(cost[first]).any():
                continue
            for last, at in self._runs(first, fewest, budget):
                count = int(self.counts[at])
                more = self.entering[first][last - first - 1][at] * count
                reached = cost[first, : chips + 1 - count] + more
                better = np.flatnonzero(reached < cost[last, count:])
                cost[last, better + count] = reached[better]
                for used in better.tolist():
                    came[last, used + count] = first, self.cuts[at]
        if not np.isfinite(cost[layers]).any():
            return None
        return self._traced(came, int(np.argmin(cost[layers])), period_s)

    def _traced(
        self, came: dict[tuple[int, int], tuple[int, Cut]], used: int, period_s: float
    ) -> Groups:
        groups: list[Group] = []
        last, slowest = len(self.problem.choices), 0.0
        while last:
            first, cut = came[last, used]
            picks = self._picks(first, last, cut, period_s)
            for layer, pick in zip(range(first, last), picks, strict=True):
                slowest = max(slowest, float(self.problem.choices[layer].seconds[0, pick]))
            groups.append(Group(first, last, cut, picks))
            last, used = first, used - cut.chips
        return Groups(tuple(reversed(groups)), slowest)

    def _fewest(self, period_s: float) -> list[Floats]:
        """Return for each layer and cut the fewest elements of a chip, or infinity."""
        fewest: list[Floats] = []
        for layer in self.aligned:
            least = np.full(len(self.cuts), np.inf)
            for at, (seconds, elements, _) in enumerate(layer):
                fast = elements[seconds <= period_s]
                if len(fast):
                    least[at] = fast.min()
            fewest.append(least)
        return fewest

    def _runs(self, first: int, fewest: list[Floats], budget: float) -> Iterator[tuple[int, int]]:
        """Yield the groups that may begin with a layer: the layer after, and the cut.

        Of the cuts for as many chips only that of least traffic matters.
        """
        elements = np.zeros(len(self.cuts))
        for last in range(first + 1, len(self.problem.choices) + 1):
            elements = elements + fewest[last - 1]
            fits = elements <= self.chips.elements
            if not fits.any():
                return
            entering = self.entering[first][last - first - 1]
            best: dict[int, int] = {}
            for at in np.flatnonzero(fits & (entering <= budget)).tolist():
                count = int(self.counts[at])
                if count not in best or entering[at] < entering[best[count]]:
                    best[count] = at
            for at in best.values():
                yield last, at

    @cached_property
    def entering(self) -> list[list[Floats]]:
        """The bytes that come into a chip for an image: by first layer, further layers, cut."""
        layers = range(len(self.problem.choices))
        return [list(self._entering_from(first)) for first in layers]

    def _entering_from(self, first: int) -> Iterator[Floats]:
        network, seen, total = self.problem.network, set[int](), np.zeros(len(self.cuts))
        for layer in network.layers[first:]:
            for tensor in dict.fromkeys(layer.inputs):
                producer = network.producer.get(tensor)
                if producer is None or tensor in seen:
                    continue
                if producer < first:
                    seen.add(tensor)
                    total = total + self._whole(layer, tensor)
                else:
                    total = total + self._between(layer, tensor)
            yield total

    def _whole(self, layer: Layer, tensor: int) -> Floats:
        """Return the bytes that come to each chip of a group of a tensor from outside of it."""
        part = self.problem.network.tensors[tensor].size_bytes / (self.rows * self.columns)
        return part if layer.kind is LayerKind.CONVOLUTION else part / self.channels

    def _between(self, layer: Layer, tensor: int) -> Floats:
        """Return the bytes that the chips of a group send each of them of a tensor."""
        size = self.problem.network.tensors[tensor].size_bytes
        part, total = size / (self.rows * self.columns), np.zeros(len(self.cuts))
        if layer.window is not None and tensor == layer.inputs[0]:
            shape = self.problem.network.tensors[tensor].shape
            for axis, parts in ((HEIGHT, self.rows), (WIDTH, self.columns)):
                at = axis - HEIGHT
                rim = max(0, layer.window.kernel[at] - layer.window.stride[at])
                rims = part / (shape[axis] / parts) * rim / self.channels
                total = total + np.where(parts > 1, rims, 0)
        if layer.kind in (LayerKind.CONVOLUTION, LayerKind.GENERAL):
            total = total + part * (1 - 1 / self.channels)
        return total

    def _picks(self, first: int, last: int, cut: Cut, period_s: float) -> tuple[int, ...]:
        return least_traffic(self._options(first, last, cut, period_s), self.chips.elements)

    def _options(self, first: int, last: int, cut: Cut, period_s: float) -> Options:
        at = self.cuts.index(cut)
        options: Options = []
        for layer in range(first, last):
            seconds, elements, index = self.aligned[layer][at]
            fast = np.flatnonzero(seconds <= period_s)
            traffic = self.problem.choices[layer].traffic[index[fast]]
            options.append((elements[fast], traffic, index[fast]))
        return options

    def chosen(self, groups: Groups, solver: Solver, seed: int) -> tuple[Groups, float]:
        """Return the groups with the splits that a solver takes, and the largest gap."""
        picked: list[Group] = []
        gap = 0.0
        for group in groups.groups:
            options = self._options(group.first, group.last, group.cut, groups.period_s)
            choice = choice_of(options, self.chips.elements, solver, seed)
            picked.append(replace(group, picks=choice.picks))
            gap = max(gap, choice.gap)
        return replace(groups, groups=tuple(picked)), gap


def _aligned(problem: Problem, layer: int, cut: Cut) -> tuple[Floats, Ints, Ints]:
    """Return the splits that a cut allows: seconds, elements of a chip, and index of each."""
    choices, kind = problem.choices[layer], problem.kinds[0]
    fits = np.flatnonzero((choices.held <= kind.data_bytes) & _matches(choices, cut))
    return choices.seconds[0, fits], choices.tiles[fits] // cut.chips, fits


def _matches(choices: Choices, cut: Cut) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    parts = choices.parts
    if parts.shape[1] == CHANNEL + 1:
        wanted = np.array([1, cut.rows, cut.columns, cut.channels])
        return (parts % wanted == 0).all(axis=1)
    if parts.shape[1] and cut.rows * cut.columns == 1:
        return parts[:, -1] % cut.channels == 0
    return np.full(len(parts), cut.chips == 1)
