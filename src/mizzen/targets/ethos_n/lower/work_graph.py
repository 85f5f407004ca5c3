"""The work graph, what a network becomes on its way to passes: kinds of work, nodes, rewrites.

Nodes are finer than operations (an FC is a relabelling, perhaps a change of layout, and an MCE
operation) and a pass takes a chain of them. Every node makes one feature map; the same map may be
an input of a node more than once. The graph is edited in place, by rewrites and by repairs.

A rewrite leaves fewer passes; it is tried at one node and says whether it changed the graph, until
none applies. Where the library's own rules would change what the network computes (they look at
the kinds of nodes only), these do not apply.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations, its graph optimisation.
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
    """Bounds, in the quantised numbers of the map, applied after the accumulators."""

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
    """Maps one after another along an axis, each written to its place by the pass before."""

    axis: int


@dataclass(frozen=True, slots=True)
class Extract:
    """A part of a map, read from its place by the pass after."""

    offset: Shape


@dataclass(frozen=True, slots=True)
class Copy:
    """The same map in a buffer of its own."""


@dataclass(frozen=True, slots=True)
class Requantization:
    """The same reals in another quantisation or type, by the scaling after the accumulators."""


Work = (
    Source | Sink | Stored | Mce | Clamp | FusedPle | LonePle | Relayout | Relabel | Concat
    | Extract | Copy | Requantization
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
        ordered: dict[Node, None] = {}
        for target in self.nodes:
            if not target.users:
                _visit(target, ordered)
        return list(ordered)


def _visit(target: Node, visited: dict[Node, None]) -> None:
    """Add a node's unvisited ancestors and itself, in post-order."""
    stack: list[tuple[Node, Iterator[Node]]] = []
    if target not in visited:
        stack.append((target, iter(target.inputs)))
    while stack:
        node, inputs = stack[-1]
        following = next((source for source in inputs if source not in visited), None)
        if following is None:
            stack.pop()
            visited[node] = None
        else:
            stack.append((following, iter(following.inputs)))


def nearest(node: Node, holds: Callable[[Node], bool]) -> Node | None:
    """Return the first of a node and its ancestors, depth first, of which something holds."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        candidate = stack.pop()
        if candidate in seen:
            continue
        if holds(candidate):
            return candidate
        seen.add(candidate)
        stack.extend(reversed(candidate.inputs))
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


Rule = Callable[[Graph, Node], bool]

BOUND_TO_LAYOUT = (Sink, Concat, Extract, Relabel)
"""Works that take their input's bytes as they lie."""


def rewrite(graph: Graph) -> None:
    """Apply the rules in their order at the nodes in theirs, from the start after every change."""
    while any(rule(graph, node) for node in graph.sorted() for rule in RULES):
        pass


def _only_user(node: Node) -> Node | None:
    return node.users[0] if len(node.users) == 1 else None


def drop_opposite_relayouts(graph: Graph, node: Node) -> bool:
    """A -> B -> A is nothing."""
    after = _only_user(node)
    if after is None or not isinstance(node.work, Relayout) or not isinstance(after.work, Relayout):
        return False
    if node.demands.stays or after.demands.stays or node.source.layout is not after.layout:
        return False
    graph.bypass(node)
    graph.bypass(after)
    return True


def requantize_before_relabel(graph: Graph, node: Node) -> bool:
    """A requantisation after a relabelling goes before it, where it can ride on what is there.

    Not where the relabelling gives the numbers another meaning, which the order then matters for.
    """
    after = _only_user(node)
    if after is None or not isinstance(node.work, Relabel):
        return False
    if not isinstance(after.work, Requantization) or node.quantization != node.source.quantization:
        return False
    move_before(graph, after, [node])
    return True


def move_before(graph: Graph, requantization: Node, nodes: Sequence[Node]) -> None:
    """Move a requantisation before nodes that follow one another, the last of which it reads."""
    first = nodes[0]
    moved = Node(
        Requantization(),
        first.source.shape,
        requantization.data_type,
        requantization.quantization,
        first.source.layout,
        set(requantization.operation_ids),
    )
    graph.insert_before(first, 0, moved)
    for node in nodes:
        node.quantization, node.data_type = moved.quantization, moved.data_type
    graph.bypass(requantization)


def requantize_before_concat(graph: Graph, node: Node) -> bool:
    """A requantisation after a concatenation goes before it, to every part."""
    after = _moved_before_concat(graph, node, Requantization)
    if after is None:
        return False
    node.quantization, node.data_type = after.quantization, after.data_type
    return True


def copy_before_concat(graph: Graph, node: Node) -> bool:
    """A copy after a concatenation goes before it, to every part."""
    return _moved_before_concat(graph, node, Copy) is not None


def _moved_before_concat(graph: Graph, concat: Node, kind: type) -> Node | None:
    """Move what is after a concatenation, if it is of a kind, to every part; return what it was.

    Not where it is a part of a concatenation along another axis, which needs it in one buffer.
    """
    after = _only_user(concat)
    if after is None or not isinstance(concat.work, Concat) or not isinstance(after.work, kind):
        return None
    if _concatenates_another_way(concat, after):
        return None
    for place, source in enumerate(list(concat.inputs)):
        moved = Node(
            after.work,
            source.shape,
            after.data_type,
            after.quantization,
            source.layout,
            set(after.operation_ids),
        )
        graph.insert_before(concat, place, moved)
    graph.bypass(after)
    return after


def _concatenates_another_way(concat: Node, after: Node) -> bool:
    """Say whether a concatenation, copied or requantised, goes into one along another axis."""
    node: Node | None = after
    while node is not None and isinstance(node.work, Copy | Requantization):
        if any(isinstance(user.work, Concat) and user.work != concat.work for user in node.users):
            return True
        node = _only_user(node)
    return False


def _merge_into_user(graph: Graph, node: Node, first: type, second: type) -> bool:
    after = _only_user(node)
    if after is None or not isinstance(node.work, first) or not isinstance(after.work, second):
        return False
    after.operation_ids |= node.operation_ids
    graph.bypass(node)
    return True


def merge_copy_into_requantization(graph: Graph, node: Node) -> bool:
    """A copy that is requantised is only requantised."""
    return _merge_into_user(graph, node, Copy, Requantization)


def merge_requantizations(graph: Graph, node: Node) -> bool:
    """Of two requantisations the second remains, if the first saturates nothing that it keeps."""
    after = _only_user(node)
    if after is None or not isinstance(node.work, Requantization) or not _covers(node, after):
        return False
    return _merge_into_user(graph, node, Requantization, Requantization)


def _covers(node: Node, after: Node) -> bool:
    """Say whether the reals of one map's range are all in the other's."""
    low, high = _real_range(node)
    lower, higher = _real_range(after)
    return low <= lower and higher <= high


def _real_range(node: Node) -> tuple[float, float]:
    scale, zero_point = node.quantization.scale, node.quantization.zero_point
    lowest, highest = node.data_type.lowest, node.data_type.highest
    return scale * (lowest - zero_point), scale * (highest - zero_point)


def merge_copies(graph: Graph, node: Node) -> bool:
    """Of two copies the second remains."""
    return _merge_into_user(graph, node, Copy, Copy)


def merge_concats(graph: Graph, node: Node) -> bool:
    """A concatenation of concatenations along one axis is one of all parts."""
    if not isinstance(node.work, Concat) or len(node.inputs) < 2:
        return False
    inner = next((source for source in node.inputs if source.work == node.work), None)
    if inner is None or len(inner.users) != 1:
        return False
    node.operation_ids |= inner.operation_ids
    graph.bypass(inner)
    return True


def drop_unused(graph: Graph, node: Node) -> bool:
    """A map that nothing reads is not made."""
    if node.users or isinstance(node.work, Sink):
        return False
    graph.remove(node)
    return True


def relabel_constant(graph: Graph, node: Node) -> bool:
    """A constant that is read as another map is that map."""
    after = _only_user(node)
    if after is None or not isinstance(node.work, Stored) or not isinstance(after.work, Relabel):
        return False
    if node.layout is not Layout.NHWC:
        return False
    node.shape, node.quantization = after.shape, after.quantization
    node.layout = after.layout
    node.operation_ids |= after.operation_ids
    graph.bypass(after)
    return True


def drop_relayout_of_constant(graph: Graph, node: Node) -> bool:
    """A constant stays as it was given: every pass can read it so."""
    after = _only_user(node)
    if after is None or not isinstance(node.work, Stored) or not isinstance(after.work, Relayout):
        return False
    if node.layout is not Layout.NHWC or after.demands.stays:
        return False
    if any(isinstance(user.work, BOUND_TO_LAYOUT) for user in after.users):
        return False
    graph.bypass(after)
    return True


RULES: tuple[Rule, ...] = (
    drop_opposite_relayouts,
    requantize_before_relabel,
    requantize_before_concat,
    copy_before_concat,
    merge_copy_into_requantization,
    merge_requantizations,
    merge_copies,
    merge_concats,
    drop_unused,
    relabel_constant,
    drop_relayout_of_constant,
)
"""In the order in which they are tried."""
