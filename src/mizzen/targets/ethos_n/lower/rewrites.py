"""Rewrites of the work graph that leave fewer passes, applied until none applies.

A rewrite is tried at one node and says whether it changed the graph. Where the library's own rules
would change what the network computes (they look at the kinds of nodes only), these do not apply.

Ref: Ethos-N driver stack 23.02, the Support Library's graph optimisation.
"""

from __future__ import annotations

from collections.abc import Callable

from mizzen.targets.ethos_n.lower.work_graph import (
    Concat,
    Copy,
    Extract,
    Graph,
    Layout,
    Node,
    Relabel,
    Relayout,
    Requantise,
    Sink,
    Stored,
)

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


def requantise_before_relabel(graph: Graph, node: Node) -> bool:
    """A requantisation behind a relabelling goes before it, where it can ride on what is there.

    Not where the relabelling gives the numbers another meaning, which the order then matters for.
    """
    after = _only_user(node)
    if after is None or not isinstance(node.work, Relabel):
        return False
    if not isinstance(after.work, Requantise) or node.quantization != node.source.quantization:
        return False
    moved = Node(
        Requantise(),
        node.source.shape,
        after.data_type,
        after.quantization,
        node.layout,
        set(after.operation_ids),
    )
    graph.insert_before(node, 0, moved)
    node.quantization, node.data_type = after.quantization, after.data_type
    graph.bypass(after)
    return True


def requantise_before_concat(graph: Graph, node: Node) -> bool:
    """A requantisation behind a concatenation goes before it, to every part."""
    after = _moved_before_concat(graph, node, Requantise)
    if after is None:
        return False
    node.quantization, node.data_type = after.quantization, after.data_type
    return True


def copy_before_concat(graph: Graph, node: Node) -> bool:
    """A copy behind a concatenation goes before it, to every part."""
    return _moved_before_concat(graph, node, Copy) is not None


def _moved_before_concat(graph: Graph, concat: Node, kind: type) -> Node | None:
    """Move what is behind a concatenation, if it is of a kind, to every part; return what it was.

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
    while node is not None and isinstance(node.work, Copy | Requantise):
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


def merge_copy_into_requantisation(graph: Graph, node: Node) -> bool:
    """A copy that is requantised is only requantised."""
    return _merge_into_user(graph, node, Copy, Requantise)


def merge_requantisations(graph: Graph, node: Node) -> bool:
    """Of two requantisations the second remains, if the first saturates nothing that it keeps."""
    after = _only_user(node)
    if after is None or not isinstance(node.work, Requantise) or not _covers(node, after):
        return False
    return _merge_into_user(graph, node, Requantise, Requantise)


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
    """A map that nobody reads is not made."""
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
    requantise_before_relabel,
    requantise_before_concat,
    copy_before_concat,
    merge_copy_into_requantisation,
    merge_requantisations,
    merge_copies,
    merge_concats,
    drop_unused,
    relabel_constant,
    drop_relayout_of_constant,
)
"""In the order in which they are tried."""
