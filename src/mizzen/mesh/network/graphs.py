"""Networks from tensor graphs: which operations are a layer.

Operations that pass numbers of 32 bits or more on to each other are one layer, since such numbers
would be four times the traffic: a sum with the rescaling of its operands, a whole softmax. What
follows a layer position by position, and what takes a single convolution's output and adds a tensor
to it, joins it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mizzen.diagnostics import fail
from mizzen.graph import DType, Graph, Operation, Value
from mizzen.mesh.network.forms import CONSTANTS, POINTWISE, form_of
from mizzen.mesh.network.network import Layer, Network, Tensor
from mizzen.mesh.network.rewriting import prepare
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d
from mizzen.partition.extraction import extract_operations

WIDE = frozenset({DType.INT32, DType.INT48, DType.BOOL})
"""Numbers that do not leave a layer, as far as that can be had."""


@dataclass(eq=False)
class _Cluster:
    """Operations of a layer to be, in order of execution; the last gives its result."""

    operations: list[Operation]
    anchors: list[Operation] = field(default_factory=list[Operation])
    """Those that are not pointwise."""

    @property
    def result(self) -> Value:
        return self.operations[-1].results[0]

    @property
    def members(self) -> set[Operation]:
        return set(self.operations)

    def inputs(self) -> list[Value]:
        """Return the values from outside, in order of first use, constants apart."""
        inside = self.members
        values: dict[Value, None] = {}
        for operation in self.operations:
            for value in operation.operands:
                if value.producer is None or (
                    value.producer not in inside and value.producer.kind not in CONSTANTS
                ):
                    values[value] = None
        return list(values)


def network_of_graph(graph: Graph, name: str) -> Network:
    """Return a graph's layers and tensors; the graph's edges are changed to feature maps.

    Every operation is in exactly one layer, whose chain is a copy of its operations. E565 for a
    network with states, or with an operation that gives other than one tensor.
    """
    edges = prepare(graph)
    _require_plain(graph)
    clusters = _clusters(graph)
    values: dict[Value, int] = {value: index for index, value in enumerate(graph.inputs)}
    for cluster in clusters:
        for operation in cluster.operations:
            for value in operation.results:
                if _leaves(graph, value, cluster.members):
                    values[value] = len(values)
    tensors = tuple(
        Tensor(value.name or f"tensor {index}", value.shape, value.dtype.numpy.itemsize)
        for value, index in values.items()
    )
    layers = tuple(_layer(graph, cluster, values) for cluster in clusters)
    return Network(
        name,
        tensors,
        layers,
        tuple(range(len(graph.inputs))),
        tuple(values[value] for value in graph.outputs),
        graph,
        tuple(values),
        edges,
    )


def _require_plain(graph: Graph) -> None:
    for operation in graph:
        if len(operation.results) != 1 or operation.kind.startswith("VARIABLE"):
            raise fail(
                "E565",
                "operations on a mesh must give one tensor, of their inputs alone, and "
                f"{operation.kind} gives {len(operation.results)} or has a state",
                origin=operation.origin,
                help="compile the network for a single NPU: mizzen compile keeps states",
            )


def _clusters(graph: Graph) -> list[_Cluster]:
    """Return the layers to be, in an order of execution."""
    operations = [operation for operation in graph.sorted() if operation.kind not in CONSTANTS]
    clusters = _islands(graph, operations)
    _part(graph, clusters)
    _join_followers(graph, clusters)
    _join_convolutions(graph, clusters)
    return _in_order(clusters, operations)


def _islands(graph: Graph, operations: list[Operation]) -> dict[Operation, _Cluster]:
    """Join operations over wide values, where nothing outside lies between them."""
    of: dict[Operation, _Cluster] = {}
    for operation in operations:
        anchors = [] if operation.kind in POINTWISE else [operation]
        of[operation] = _Cluster([operation], anchors)
        for value in operation.operands:
            producer = value.producer
            if producer in of and value.dtype in WIDE and value not in graph.outputs:
                _join(of, of[producer], of[operation])
    return of


def _join(of: dict[Operation, _Cluster], one: _Cluster, other: _Cluster) -> None:
    """Make two clusters one, unless a path between them leads through a third or one's side leaves.

    A layer gives one tensor: what others take of the first besides the second keeps them apart.
    """
    if one is other or not _is_joinable(of, one, other):
        return
    one.operations += other.operations
    one.anchors += other.anchors
    for operation in other.operations:
        of[operation] = one


def _is_joinable(of: dict[Operation, _Cluster], one: _Cluster, other: _Cluster) -> bool:
    both = one.members | other.members
    for operation in one.operations:
        for value in operation.results:
            for user in value.uses:
                if user not in both and _reaches(of, user, other):
                    return False
    return True


def _reaches(of: dict[Operation, _Cluster], start: Operation, target: _Cluster) -> bool:
    """Whether what `start` gives is needed, by way of others, by a cluster."""
    pending, seen = [start], {start}
    while pending:
        operation = pending.pop()
        cluster = of.get(operation)
        if cluster is target:
            return True
        members = cluster.operations if cluster is not None else [operation]
        for member in members:
            for value in member.results:
                for user in value.uses:
                    if user not in seen:
                        seen.add(user)
                        pending.append(user)
    return False


def _leaves(graph: Graph, value: Value, members: set[Operation]) -> bool:
    return value in graph.outputs or any(user not in members for user in value.uses)


def _gives_one(graph: Graph, cluster: _Cluster) -> bool:
    given = [
        value
        for operation in cluster.operations
        for value in operation.results
        if _leaves(graph, value, cluster.members)
    ]
    return given == [cluster.result]


def _join_followers(graph: Graph, of: dict[Operation, _Cluster]) -> None:
    """Join what takes one cluster's result position by position, and is all that takes it."""
    for cluster in list(dict.fromkeys(of.values())):
        inputs = cluster.inputs()
        if cluster.anchors or len(inputs) != 1 or not _gives_one(graph, cluster):
            continue
        (taken,) = inputs
        producer = taken.producer
        if producer is None or producer.kind in CONSTANTS or taken in graph.outputs:
            continue
        if cluster.result.shape == taken.shape and set(taken.uses) <= cluster.members:
            before = of[producer]
            if _gives_one(graph, before) and len(producer.results) == 1:
                _join(of, before, cluster)


def _join_convolutions(graph: Graph, of: dict[Operation, _Cluster]) -> None:
    """Join a sum with the convolution that gives one of its operands, the last one."""
    for cluster in list(dict.fromkeys(of.values())):
        if cluster.anchors or len(cluster.inputs()) < 2:
            continue
        for taken in reversed(cluster.inputs()):
            producer = taken.producer
            if producer is None or producer.kind in CONSTANTS or taken in graph.outputs:
                continue
            before = of[producer]
            if (
                _is_convolution(before)
                and not set(before.inputs()) & set(cluster.inputs())
                and taken.shape == cluster.result.shape
                and set(taken.uses) <= cluster.members
                and before is not cluster
                and _is_joinable(of, before, cluster)
            ):
                _join(of, before, cluster)
                break


def _is_convolution(cluster: _Cluster) -> bool:
    return (
        len(cluster.anchors) == 1
        and isinstance(cluster.anchors[0], Conv2d | DepthwiseConv2d)
        and len(cluster.inputs()) == 1
    )


def _part(graph: Graph, of: dict[Operation, _Cluster]) -> None:
    """Take clusters apart that give more than one tensor, since a layer gives one."""
    for cluster in list(dict.fromkeys(of.values())):
        if not _gives_one(graph, cluster):
            for operation in cluster.operations:
                anchors = [] if operation.kind in POINTWISE else [operation]
                of[operation] = _Cluster([operation], anchors)


def _in_order(of: dict[Operation, _Cluster], operations: Iterable[Operation]) -> list[_Cluster]:
    """Return clusters so that each comes after those whose results it takes."""
    place = {operation: index for index, operation in enumerate(operations)}
    for cluster in set(of.values()):
        cluster.operations.sort(key=place.__getitem__)
    order: list[_Cluster] = []
    done: set[_Cluster] = set()
    for operation in place:
        _visit(of, of[operation], done, order)
    return order


def _visit(
    of: dict[Operation, _Cluster], start: _Cluster, done: set[_Cluster], order: list[_Cluster]
) -> None:
    stack = [start]
    while stack:
        cluster = stack[-1]
        if cluster in done:
            stack.pop()
            continue
        producers = [of[value.producer] for value in cluster.inputs() if value.producer is not None]
        waiting = [before for before in producers if before not in done]
        if waiting:
            stack += waiting
        else:
            stack.pop()
            done.add(cluster)
            order.append(cluster)


def _layer(graph: Graph, cluster: _Cluster, values: dict[Value, int]) -> Layer:
    extracted = extract_operations(graph, cluster.operations)
    form = form_of(cluster.operations, cluster.anchors, cluster.inputs())
    chain = extracted.graph
    chain.set_inputs([chain.inputs[extracted.inputs.index(value)] for value in form.inputs])
    chain.set_outputs([chain.outputs[extracted.outputs.index(cluster.result)]])
    return Layer(
        name=cluster.result.name or f"{cluster.operations[-1].kind} {values[cluster.result]}",
        kind=form.kind,
        inputs=tuple(values[value] for value in form.inputs),
        output=values[cluster.result],
        window=form.window,
        input_channels=form.input_channels,
        weight_item_bytes=form.weight_item_bytes,
        channel_bytes=form.channel_bytes,
        constant_bytes=form.constant_bytes,
        offsets=form.offsets,
        reduced_axes=form.reduced_axes,
        chain=chain,
        origin=cluster.operations[0].origin,
    )
