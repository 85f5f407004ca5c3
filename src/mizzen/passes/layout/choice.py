"""A graph as layouts see it, and the order chosen in it for every operation.

RESHAPE and TRANSPOSE are no operations here but ways to look at a tensor: a *view* is the order
in which the looker's elements lie in the tensor (see `order`). What an operand looks at is a
*root*: the result of any other operation, or an input of the graph.

What a layout costs is the bytes of every tensor, once for each other order that its users want.
Choosing the best is a multiway cut, so this descends instead: first every operation takes the
order that suits its operands, in order of execution; then single operations, then blocks of
operations that share an order, change whenever that makes the whole cheaper. Every change lowers
the cost, a whole number, so it ends; the number of sweeps is bounded besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from mizzen.graph import DType, Graph, Operation, Value
from mizzen.ops.control_flow import Constant
from mizzen.ops.data_layout import Reshape, Transpose
from mizzen.passes.layout.order import (
    Freedom,
    Order,
    aligned,
    composed,
    freedom,
    inverse,
    permuted,
    row_major_of,
)

BYTES = {
    DType.INT16: 2,
    DType.FP16: 2,
    DType.BF16: 2,
    DType.INT32: 4,
    DType.FP32: 4,
    DType.INT48: 8,
}
"""What moving one element costs, in bytes; one where nothing is said."""


class Edges(Enum):
    """Whether moving the graph's inputs and outputs costs as much as moving anything else.

    FREE: nothing, since what uses the graph moves them anyway.
    """

    KEPT = "kept"
    FREE = "free"


@dataclass(eq=False, slots=True)
class Node:
    """An operation and the order that its space has; without a freedom the model's order."""

    operation: Operation
    freedom: Freedom | None
    order: Order = ()
    takes: list[Use] = field(default_factory=list["Use"])
    gives: list[Root] = field(default_factory=list["Root"])

    def result_order(self, order: Order, value: Value) -> Order | None:
        """Return the order of a result when the space has `order`; None if that cannot be."""
        if self.freedom is None or not self.freedom.follows:
            return row_major_of(value.shape)
        return self.freedom.operand_order(order, aligned(self.operation))

    def space_order(self, result_order: Order) -> Order | None:
        """Return the order of the space with which the result has an order, if there is one."""
        if self.freedom is None or not self.freedom.follows:
            return None
        return self.freedom.space_order(result_order, aligned(self.operation))

    @property
    def is_pliant(self) -> bool:
        """Whether it computes with constants only, in any order and shape that is wanted."""
        free = self.freedom
        return free is not None and free.uniform and not free.last and not self.takes


@dataclass(eq=False, slots=True)
class Root:
    """A tensor in memory: its value, who gives it (None: an input), and who looks at it."""

    value: Value
    producer: Node | None
    bytes: int
    uses: list[Use] = field(default_factory=list["Use"])

    def order(self) -> Order:
        """Return the order that the tensor has in memory as things stand."""
        if self.producer is None:
            return row_major_of(self.value.shape)
        order = self.producer.result_order(self.producer.order, self.value)
        assert order is not None, "an order was given to an operation that cannot have it"
        return order


@dataclass(eq=False, slots=True)
class Use:
    """An operand, or an output of the graph (no node): the value it takes, and its view."""

    root: Root
    view: Order
    value: Value
    node: Node | None
    index: int

    @property
    def freedom(self) -> Freedom | None:
        """The freedom of the user, if the operand's order follows from it."""
        own = None if self.node is None else self.node.freedom
        return own if own is not None and self.index in own.tensors else None

    def wanted(self, order: Order) -> Order | None:
        """Return the order that the root must have when the user's space has `order`."""
        free = self.freedom
        if free is None:
            return self.view
        own = free.operand_order(order, self.value.shape)
        return None if own is None else composed(own, self.view)

    def wanted_now(self) -> Order:
        """Return the order that the root must have as things stand."""
        order = self.wanted(() if self.node is None else self.node.order)
        assert order is not None, "an order was given to an operation that cannot have it"
        return order

    def space_order(self, root_order: Order) -> Order | None:
        """Return the order of the user's space with which the root may have `root_order`."""
        free = self.freedom
        if free is None:
            return None
        own = composed(root_order, inverse(self.view))
        return None if own is None else free.space_order(own, self.value.shape)


@dataclass(slots=True)
class Network:
    """The nodes in order of execution, the roots, and the uses by outputs of the graph."""

    nodes: list[Node]
    roots: dict[Value, Root]
    outputs: list[Use]

    def cost(self) -> int:
        """Return the bytes that must be moved between orders."""
        return sum(map(root_cost, self.roots.values()))


def root_cost(root: Root) -> int:
    """Return the bytes of a root, once for each other order that its users want."""
    order = root.order()
    return root.bytes * len({wanted for use in root.uses if (wanted := use.wanted_now()) != order})


def network(graph: Graph, edges: Edges = Edges.KEPT) -> Network:
    """See a graph as layouts see it, everything in the model's order."""
    return _Reading(graph, edges).read()


class _Reading:
    def __init__(self, graph: Graph, edges: Edges) -> None:
        self.graph = graph
        self.edges = edges
        self.views: dict[Value, tuple[Root, Order]] = {}
        self.result = Network([], {}, [])

    def read(self) -> Network:
        """Return the graph's roots, the operations that use them, and what goes outside."""
        for value in self.graph.inputs:
            self._add_root(value, None)
        for operation in self.graph.sorted():
            if not self._is_view(operation):
                self._add_node(operation)
        for index, value in enumerate(self.graph.outputs):
            use = self._use(value, None, index)
            if use is not None:
                self.result.outputs.append(use)
                if self.edges is not Edges.FREE:
                    use.root.uses.append(use)
        return self.result

    def _is_view(self, operation: Operation) -> bool:
        """Note what a RESHAPE or TRANSPOSE looks at; False for anything else."""
        if not isinstance(operation, (Reshape, Transpose)):
            return False
        source = operation.input1
        if source not in self.views:
            return False
        root, view = self.views[source]
        if isinstance(operation, Transpose):
            seen = composed(permuted(source.shape, operation.perms), view)
            if seen is None:
                return False
            view = seen
        self.views[operation.result] = (root, view)
        return True

    def _add_node(self, operation: Operation) -> None:
        if isinstance(operation, Constant):
            return
        free = freedom(operation)
        node = Node(operation, free, row_major_of(free.space) if free else ())
        for index, operand in enumerate(operation.operands):
            use = self._use(operand, node, index)
            if use is not None:
                node.takes.append(use)
                use.root.uses.append(use)
        node.gives = [self._add_root(value, node) for value in operation.results]
        self.result.nodes.append(node)

    def _add_root(self, value: Value, producer: Node | None) -> Root:
        size = value.type.elements * BYTES.get(value.dtype, 1)
        pliant = self.edges is Edges.FREE if producer is None else producer.is_pliant
        root = Root(value, producer, 0 if pliant else size)
        self.result.roots[value] = root
        self.views[value] = (root, row_major_of(value.shape))
        return root

    def _use(self, value: Value, node: Node | None, index: int) -> Use | None:
        """Return a use; of a constant there is none, because constants take any order freely."""
        seen = self.views.get(value)
        if seen is None:
            return None
        return Use(*seen, value, node, index)


SWEEPS = 8
"""Rounds over all operations; networks settle in two or three."""

BLOCK = 50
"""Operations that change their order together, at most."""


def choose(network: Network) -> None:
    """Set the order of every node; the cost never exceeds that of the model's own order."""
    own = network.cost()
    if own == 0:
        return
    _follow_operands(network)
    _descend(network)
    if network.cost() >= own:
        _reset(network)
        _descend(network)


def _reset(network: Network) -> None:
    for node in network.nodes:
        node.order = row_major_of(node.freedom.space) if node.freedom else ()


def _descend(network: Network) -> None:
    free = [node for node in network.nodes if node.freedom is not None]
    for sweep in range(SWEEPS):
        cheaper = False
        for node in free if sweep % 2 else reversed(free):
            cheaper |= _improve(node)
        if not cheaper and not _improve_blocks(network):
            return


def _follow_operands(network: Network) -> None:
    """Choose for each node, in order of execution, the order in which its operands cost least."""
    for node in network.nodes:
        if node.freedom is not None and node.takes:
            before = node.order
            orders = [*_from_operands(node), before]
            node.order = min(orders, key=lambda order: _cost_of_operands(node, order))


def _cost_of_operands(node: Node, order: Order) -> int:
    return sum(
        use.root.bytes
        for use in node.takes
        if use.freedom is not None and use.wanted(order) != use.root.order()
    )


def _from_operands(node: Node) -> Iterator[Order]:
    """Return the orders with which one of the operands needs no movement."""
    for use in node.takes:
        order = use.space_order(use.root.order())
        if order is not None and _possible(node, order):
            yield order


def _from_users(node: Node) -> Iterator[Order]:
    """Return the orders with which one of the users needs no movement."""
    for root in node.gives:
        for use in root.uses:
            order = node.space_order(use.wanted_now())
            if order is not None and _possible(node, order):
                yield order


def _possible(node: Node, order: Order) -> bool:
    """Whether all that the node takes and gives has an order when its space has this one."""
    return all(use.wanted(order) is not None for use in node.takes) and all(
        node.result_order(order, root.value) is not None for root in node.gives
    )


def _roots(nodes: Iterable[Node]) -> set[Root]:
    """Return the tensors whose cost depends on the nodes' orders."""
    result: set[Root] = set()
    for node in nodes:
        result.update(use.root for use in node.takes)
        result.update(node.gives)
    return result


def _improve(node: Node) -> bool:
    """Return a node the order that makes the whole cheapest, if another than it has does."""
    assert node.freedom is not None
    roots = _roots((node,))
    best, least = node.order, sum(map(root_cost, roots))
    if least == 0:
        return False
    start = best
    own = row_major_of(node.freedom.space)
    for order in dict.fromkeys((*_from_operands(node), *_from_users(node), own)):
        node.order = order
        cost = sum(map(root_cost, roots))
        if cost < least:
            best, least = order, cost
    node.order = best
    return best != start


def _improve_blocks(network: Network) -> bool:
    """Try to save every movement by changing a whole block on one side of it."""
    cheaper = False
    for root in network.roots.values():
        for use in root.uses:
            if use.wanted_now() != root.order():
                cheaper |= _try_block(_block_of_user(use)) or _try_block(_block_of_producer(use))
    return cheaper


def _try_block(changes: dict[Node, Order]) -> bool:
    """Make the changes if that is cheaper."""
    if not changes:
        return False
    roots = _roots(changes)
    before = {node: node.order for node in changes}
    cost = sum(map(root_cost, roots))
    for node, order in changes.items():
        node.order = order
    if sum(map(root_cost, roots)) < cost:
        return True
    for node, order in before.items():
        node.order = order
    return False


def _block_of_user(use: Use) -> dict[Node, Order]:
    """Say what must change so that the user takes the root as it is."""
    order = use.space_order(use.root.order())
    if use.node is None or order is None or not _possible(use.node, order):
        return {}
    return _spread({use.node: order})


def _block_of_producer(use: Use) -> dict[Node, Order]:
    """Say what must change so that the root is made as the user takes it."""
    node = use.root.producer
    order = None if node is None else node.space_order(use.wanted_now())
    if node is None or order is None or not _possible(node, order):
        return {}
    return _spread({node: order})


def _spread(changes: dict[Node, Order]) -> dict[Node, Order]:
    """Take along the nodes whose order agrees now, as far as they can have the new one."""
    work = list(changes)
    while work and len(changes) < BLOCK:
        node = work.pop()
        for neighbour, order in _agreeing(node, changes[node]):
            if neighbour not in changes and _possible(neighbour, order):
                changes[neighbour] = order
                work.append(neighbour)
    return changes


def _agreeing(node: Node, order: Order) -> Iterator[tuple[Node, Order]]:
    """Return neighbours that need no movement now, with the order in which they need none then."""
    for use in node.takes:
        producer = use.root.producer
        if producer is None or use.freedom is None:
            continue
        wanted = use.wanted(order)
        if wanted is not None and use.wanted_now() == use.root.order():
            turned = producer.space_order(wanted)
            if turned is not None:
                yield producer, turned
    for root in node.gives:
        given = node.result_order(order, root.value)
        for use in root.uses:
            if use.node is not None and given is not None and use.wanted_now() == root.order():
                turned = use.space_order(given)
                if turned is not None:
                    yield use.node, turned
