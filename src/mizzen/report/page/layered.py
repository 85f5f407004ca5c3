"""Places for the boxes of a graph: layers from the top, edges as lines that go around boxes.

Each box is one layer below the lowest of those that lead to it. An edge over several layers gets a
place of its own in each of them, so that it passes beside the boxes there. Orders within layers
come from the middles of neighbours, swept down and up; places from the neighbours' too, kept apart.

Ref: Sugiyama, Tagawa, Toda: Methods for visual understanding of hierarchical system structures
(1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, HEIGHT = 190.0, 40.0
GAP_ACROSS, GAP_DOWN = 22.0, 30.0
BEND_WIDTH = 12.0
"""What an edge takes in a layer that it passes."""
LONGEST_ROUTED = 48
"""Layers that an edge passes beside their boxes; a longer one goes straight, behind them."""
SWEEPS = 4

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """The upper left corners of boxes, and each edge's points from box to box.

    layers  boxes from left to right, layer by layer
    """

    corners: tuple[Place, ...]
    edges: tuple[tuple[Place, ...], ...]
    layers: tuple[int, ...]
    width: float
    height: float


def layered(after: Sequence[Sequence[int]]) -> Layout:
    """Return the layout of boxes, given what leads to each; all of it comes before the box."""
    return _Layering(after).layout()


class _Layering:
    """Nodes are boxes first, then the bends of edges that pass layers."""

    def __init__(self, after: Sequence[Sequence[int]]) -> None:
        self.boxes = len(after)
        self.layer: list[int] = []
        for before in after:
            self.layer.append(1 + max((self.layer[source] for source in before), default=-1))
        self._lower_sources(after)
        self.up: list[list[int]] = [[] for _ in after]
        self.down: list[list[int]] = [[] for _ in after]
        self.chains = [
            self._chain(source, box) for box, sources in enumerate(after) for source in sources
        ]
        count = 1 + max(self.layer, default=0)
        self.rows: list[list[int]] = [[] for _ in range(count)]
        for node, layer in enumerate(self.layer):
            self.rows[layer].append(node)
        self.x = [0.0] * len(self.layer)

    def _lower_sources(self, after: Sequence[Sequence[int]]) -> None:
        """Put what nothing leads to directly above the first that it leads to."""
        users: dict[int, int] = {}
        for box, sources in enumerate(after):
            for source in sources:
                users[source] = min(users.get(source, self.layer[box]), self.layer[box])
        for box, sources in enumerate(after):
            if not sources and box in users:
                self.layer[box] = users[box] - 1

    def _chain(self, upper: int, lower: int) -> list[int]:
        """Return the nodes of an edge: its ends, and a bend in each layer between."""
        chain = [upper]
        between = range(self.layer[upper] + 1, self.layer[lower])
        for layer in between if len(between) <= LONGEST_ROUTED else ():
            self.layer.append(layer)
            self.up.append([])
            self.down.append([])
            chain.append(len(self.layer) - 1)
        chain.append(lower)
        for one, other in pairwise(chain):
            self.down[one].append(other)
            self.up[other].append(one)
        return chain

    def layout(self) -> Layout:
        """Order the layers, place their nodes, and draw the edges."""
        self._order()
        self._place()
        left = min((self._left(node) for node in range(len(self.x))), default=0.0)
        self.x = [value - left for value in self.x]
        corners = tuple((self._left(box), self._top(box)) for box in range(self.boxes))
        width = max((x + WIDTH for x, _ in corners), default=WIDTH)
        width = max([width, *(x + BEND_WIDTH / 2 for x in self.x[self.boxes :])])
        return Layout(
            corners,
            tuple(self._points(chain) for chain in self.chains),
            tuple(self.layer[: self.boxes]),
            width,
            len(self.rows) * (HEIGHT + GAP_DOWN) - GAP_DOWN,
        )

    def _order(self) -> None:
        """Order layers by the middle places of neighbours, down and up in turn."""
        place = [0.0] * len(self.layer)
        for nodes in self.rows:
            for index, node in enumerate(nodes):
                place[node] = index
        for sweep in range(SWEEPS):
            falls = sweep % 2 == 0
            near = self.up if falls else self.down
            for nodes in self.rows if falls else self.rows[::-1]:
                middle = self._middles(nodes, near, place)
                nodes[:] = [node for _, node in sorted(zip(middle, nodes, strict=True))]
                for index, node in enumerate(nodes):
                    place[node] = index

    def _middles(
        self, nodes: Sequence[int], near: Sequence[Sequence[int]], place: Sequence[float]
    ) -> list[float]:
        """Return the mean place of each node's neighbours, its own where it has none."""
        return [
            sum(place[one] for one in near[node]) / len(near[node]) if near[node] else place[node]
            for node in nodes
        ]

    def _place(self) -> None:
        """Place nodes: at the middle of their neighbours, as far as those beside let them."""
        for nodes in self.rows:
            self._spread(nodes, [0.0] * len(nodes))
        for sweep in range(2 * SWEEPS):
            falls = sweep % 2 == 0
            near = self.up if falls else self.down
            for nodes in self.rows if falls else self.rows[::-1]:
                self._spread(nodes, self._middles(nodes, near, self.x))

    def _spread(self, nodes: Sequence[int], wanted: Sequence[float]) -> None:
        """Place a layer's nodes as near to where they want to be as their widths let them.

        Less what all before them take, places need only rise: those that do not are pooled at
        their mean, which is nearest by squares (pool adjacent violators).
        """
        before = [0.0]
        for one, other in pairwise(nodes):
            apart = (self._width(one) + self._width(other)) / 2 + GAP_ACROSS
            before.append(before[-1] + apart)
        pools: list[tuple[float, int]] = []  # sum, count
        for want, taken in zip(wanted, before, strict=False):
            total, count = want - taken, 1
            while pools and pools[-1][0] * count > total * pools[-1][1]:
                pooled = pools.pop()
                total, count = total + pooled[0], count + pooled[1]
            pools.append((total, count))
        means = [total / count for total, count in pools for _ in range(count)]
        for node, mean, taken in zip(nodes, means, before, strict=False):
            self.x[node] = mean + taken

    def _width(self, node: int) -> float:
        return WIDTH if node < self.boxes else BEND_WIDTH

    def _left(self, node: int) -> float:
        return self.x[node] - self._width(node) / 2

    def _top(self, node: int) -> float:
        return self.layer[node] * (HEIGHT + GAP_DOWN)

    def _points(self, chain: Sequence[int]) -> tuple[Place, ...]:
        """Return an edge's points: it passes a bend from the top of its layer to the bottom."""
        points = [(self.x[chain[0]], self._top(chain[0]) + HEIGHT)]
        for node in chain[1:-1]:
            points += [(self.x[node], self._top(node)), (self.x[node], self._top(node) + HEIGHT)]
        return (*points, (self.x[chain[-1]], self._top(chain[-1])))
