"""The work graph, what a network becomes on its way to passes, and the kinds of work in it.

Nodes are finer than operations (an FC is a relabelling, perhaps a change of layout, and an MCE
operation) and a pass takes a chain of them. Every node makes one feature map; the same map may be
an input of a node more than once. The graph is edited in place, by rewrites and by repairs.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import MceOperation, PleOperation, Upsample
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A fraction that extents are multiplied with; results are rounded down."""

    numerator: int = 1
    denominator: int = 1

    def times(self, extent: int) -> int:
        """Return `extent` times the ratio."""
        return extent * self.numerator // self.denominator

    def under(self, extent: int) -> int:
        """Return `extent` divided by the ratio."""
        return extent * self.denominator // self.numerator

    def __mul__(self, other: Ratio) -> Ratio:
        return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)


@dataclass(frozen=True, slots=True)
class ShapeRatio:
    """How the extents of a stage's output relate to those of its input."""

    height: Ratio = Ratio()
    width: Ratio = Ratio()
    channels: Ratio = Ratio()

    def __mul__(self, other: ShapeRatio) -> ShapeRatio:
        return ShapeRatio(
            self.height * other.height, self.width * other.width, self.channels * other.channels
        )


SAME_SHAPE = ShapeRatio()
ONE_BY_ONE = Stride()


@dataclass(frozen=True, slots=True)
class Source:
    """What an inference takes."""


@dataclass(frozen=True, slots=True)
class Sink:
    """What an inference gives; `output_index` counts the outputs of the operation behind it."""

    output_index: int


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A feature map that is a constant."""

    data: npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Mce:
    """A convolution, a depthwise convolution or a matrix product of the compute engines.

    uninterleaved_input_shape  of the input, before an interleaving by the stride if there is one
    weights, weight_data       weights' info, HWIO or HWIM, and their numbers in that shape
    bias                       int32, one for each output channel
    upscale                    by which factor `upsample` enlarges the input's planes
    """

    operation: MceOperation
    uninterleaved_input_shape: Shape
    weights: TensorInfo
    weight_data: npt.NDArray[Any]
    bias: npt.NDArray[np.int32]
    stride: Stride = ONE_BY_ONE
    pad_top: int = 0
    pad_left: int = 0
    upsample: Upsample = Upsample.OFF
    upscale: int = 1

    @property
    def ratio(self) -> ShapeRatio:
        """How the output's planes relate to the input's, kernel and padding left aside."""
        return ShapeRatio(Ratio(self.upscale), Ratio(self.upscale))


@dataclass(frozen=True, slots=True)
class Clamp:
    """Bounds, in the quantised numbers of the map, applied behind the accumulators."""

    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class FusedPle:
    """A kernel of the programmable layer engine that takes what the compute engines made.

    alpha  of a leaky ReLU
    """

    kernel: PleOperation
    ratio: ShapeRatio = SAME_SHAPE
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class LonePle:
    """A kernel of the programmable layer engine that takes its inputs from SRAM."""

    kernel: PleOperation


@dataclass(frozen=True, slots=True)
class Relayout:
    """The same map in another layout."""


@dataclass(frozen=True, slots=True)
class Relabel:
    """The same bytes read as another map."""


@dataclass(frozen=True, slots=True)
class Concat:
    """Maps behind one another along an axis, each written to its place by the pass before."""

    axis: int


@dataclass(frozen=True, slots=True)
class Extract:
    """A part of a map, read from its place by the pass behind."""

    offset: Shape


@dataclass(frozen=True, slots=True)
class Copy:
    """The same map in a buffer of its own."""


@dataclass(frozen=True, slots=True)
class Requantise:
    """The same reals in another quantisation or type, by the scaling behind the accumulators."""


Work = (
    Source | Sink | Stored | Mce | Clamp | FusedPle | LonePle | Relayout | Relabel | Concat
    | Extract | Copy | Requantise
)  # fmt: skip


W = TypeVar("W", bound=Work)


class Layout(Enum):
    """How a feature map lies in DRAM when it is not compressed."""

    NHWC = "NHWC"
    NHWCB = "NHWCB"


def layout_of(format: DataFormat) -> Layout:
    """Return the layout of what a network takes or gives."""
    return Layout.NHWCB if format is DataFormat.NHWCB else Layout.NHWC


@dataclass(slots=True)
class Demands:
    """What is fixed about a node's output or its pass, beyond what the work itself says.

    dram            the output must be in DRAM
    uncompressed    the output must not be compressed
    direct          the convolution must not use the Winograd algorithm
    stays           a change of layout that must not be merged with its neighbours
    """

    dram: bool = False
    uncompressed: bool = False
    direct: bool = False
    stays: bool = False


@dataclass(slots=True)
class Wishes:
    """What a failed attempt to form a pass wants changed; granted between two attempts."""

    dram: bool = False
    uncompressed: bool = False
    direct: bool = False
    identity_before: bool = False
    output_layout: Layout | None = None


@dataclass(slots=True, eq=False)
class Node:
    """A piece of work and the feature map that it makes.

    operation_ids  the network's operations that it is a part of
    users          in the order of connection, once for each input that the map is
    """

    work: Work
    shape: Shape
    data_type: DataType
    quantization: QuantizationInfo
    layout: Layout
    operation_ids: set[int]
    inputs: list[Node] = field(default_factory=list["Node"])
    users: list[Node] = field(default_factory=list["Node"])
    demands: Demands = field(default_factory=Demands)
    wishes: Wishes = field(default_factory=Wishes)

    @property
    def source(self) -> Node:
        """The first input."""
        return self.inputs[0]

    def doing(self, kind: type[W]) -> W:
        """Return the work, which is known to be of a kind."""
        assert isinstance(self.work, kind)
        return self.work


def make_node(work: Work, info: TensorInfo, layout: Layout, operation_ids: set[int]) -> Node:
    """Make an unconnected node whose map is as `info` says, but for the layout."""
    ids = set(operation_ids)
    return Node(work, info.shape, info.data_type, info.quantization, layout, ids)


class Graph:
    """Nodes and their connections."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> Node:
        """Take a node in, unconnected."""
        self.nodes.append(node)
        return node

    def connect(self, source: Node, user: Node, place: int | None = None) -> None:
        """Make `source` an input of `user`, the last one unless a place is given."""
        source.users.append(user)
        user.inputs.insert(len(user.inputs) if place is None else place, source)

    def _disconnect(self, user: Node, place: int) -> Node:
        source = user.inputs.pop(place)
        source.users.remove(user)
        return source

    def insert_before(self, user: Node, place: int, node: Node) -> Node:
        """Put `node` between `user` and its input at `place`."""
        self.add(node)
        source = self._disconnect(user, place)
        self.connect(source, node)
        self.connect(node, user, place)
        return node

    def insert_after(self, source: Node, node: Node) -> Node:
        """Put `node` between `source` and all its users."""
        self.add(node)
        for user in list(source.users):
            place = user.inputs.index(source)
            self._disconnect(user, place)
            self.connect(node, user, place)
        self.connect(source, node)
        return node

    def bypass(self, node: Node) -> None:
        """Remove `node`; in its users' inputs its own inputs take its place."""
        for user in list(node.users):
            place = user.inputs.index(node)
            self._disconnect(user, place)
            for index, source in enumerate(node.inputs):
                self.connect(source, user, place + index)
        self.remove(node)

    def remove(self, node: Node) -> None:
        """Remove a node that has no users."""
        while node.inputs:
            self._disconnect(node, 0)
        self.nodes.remove(node)

    def sorted(self) -> list[Node]:
        """Return the nodes each after its inputs: depth first from the nodes without users."""
        found: dict[Node, None] = {}
        for target in self.nodes:
            if not target.users:
                _visit(target, found)
        return list(found)


def _visit(target: Node, found: dict[Node, None]) -> None:
    """Add a node's unvisited ancestors and itself, in post-order."""
    stack: list[tuple[Node, Iterator[Node]]] = []
    if target not in found:
        stack.append((target, iter(target.inputs)))
    while stack:
        node, inputs = stack[-1]
        following = next((source for source in inputs if source not in found), None)
        if following is None:
            stack.pop()
            found[node] = None
        else:
            stack.append((following, iter(following.inputs)))


def nearest(node: Node, holds: Callable[[Node], bool]) -> Node | None:
    """Return the first of a node and its ancestors, depth first, of which something holds."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        found = stack.pop()
        if found in seen:
            continue
        if holds(found):
            return found
        seen.add(found)
        stack.extend(reversed(found.inputs))
    return None


def chain(graph: Graph, sources: Sequence[Node], nodes: Sequence[Node]) -> Node:
    """Add nodes that follow one another, the first of which takes `sources`; return the last."""
    for node in nodes:
        graph.add(node)
    for before, after in pairwise(nodes):
        graph.connect(before, after)
    for source in sources:
        graph.connect(source, nodes[0])
    return nodes[-1]
