"""Lowering of concatenations and splits.

Both move parts of a map in DRAM. In bricks that is possible where every part's extent along the
axis is a whole number of brick groups; otherwise the map is NHWC.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.targets.ethos_n.config import BRICK_GROUP_SHAPE
from mizzen.targets.ethos_n.lower.graph import Graph, Layout, Node, chain, make_node
from mizzen.targets.ethos_n.lower.identity import identity_after
from mizzen.targets.ethos_n.lower.work import Copy, Extract, Join, Relayout, Requantise
from mizzen.targets.ethos_n.operations import Concatenation, Split
from mizzen.targets.ethos_n.tensors import Shape, TensorInfo


def _common_layout(axis: int, extents: Sequence[int]) -> Layout:
    whole = all(extent % BRICK_GROUP_SHAPE[axis] == 0 for extent in extents)
    return Layout.NHWCB if whole else Layout.NHWC


def add_concatenation(
    graph: Graph,
    operation: Concatenation,
    sources: Sequence[Node],
    infos: Sequence[TensorInfo],
    output: TensorInfo,
    ids: set[int],
    *,
    strict_precision: bool,
) -> Node:
    """Add the nodes of a concatenation; give the last.

    Every part is requantised where it needs to be, then copied: a copy that only the concatenation
    uses is later made by the pass that computes the part.
    """
    layout = _common_layout(operation.axis, [info.shape[operation.axis] for info in infos])
    join = Node(Join(operation.axis), output.shape, output.data_type, operation.output, layout, ids)
    nodes = [join]
    if layout is not Layout.NHWCB:
        nodes.append(_like(join, Relayout(), Layout.NHWCB))
    last = chain(graph, sources, nodes)
    for place, info in enumerate(infos):
        if join.inputs[place].layout is not layout:
            part = make_node(Relayout(), info, layout, ids)
            graph.insert_before(join, place, part)
    for place, info in enumerate(infos):
        if join.inputs[place].quantization != operation.output:
            work = Requantise()
            part = Node(work, info.shape, info.data_type, operation.output, layout, set(ids))
            graph.insert_before(join, place, part)
            if strict_precision:
                graph.insert_before(part, 0, identity_after(part.source))
    for place, info in enumerate(infos):
        part = Node(Copy(), info.shape, info.data_type, operation.output, layout, set(ids))
        graph.insert_before(join, place, part)
    return last


def _like(node: Node, work: Relayout, layout: Layout) -> Node:
    return Node(
        work, node.shape, node.data_type, node.quantization, layout, set(node.operation_ids)
    )


def add_split(
    graph: Graph, operation: Split, source: Node, info: TensorInfo, ids: set[int]
) -> list[Node]:
    """Add the nodes of a split; give those of its outputs."""
    layout = _common_layout(operation.axis, operation.sizes)
    if source.layout is not layout:
        relayout = make_node(Relayout(), info, layout, ids)
        source = chain(graph, [source], [relayout])
    parts: list[Node] = []
    begin = 0
    for size in operation.sizes:
        offset = _with_extent((0, 0, 0, 0), operation.axis, begin)
        shape = _with_extent(info.shape, operation.axis, size)
        work = Extract(offset)
        parts.append(Node(work, shape, info.data_type, info.quantization, layout, set(ids)))
        begin += size
    for part in parts:
        chain(graph, [source], [part])
    return parts


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    n, h, w, c = (extent if at == axis else old for at, old in enumerate(shape))
    return n, h, w, c
