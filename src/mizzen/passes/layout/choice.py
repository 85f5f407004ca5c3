"""Choose an order for every operation, so that little memory must be moved between orders.

What a layout costs is the bytes of every tensor, once for each other order that its users want.
Choosing the best is a multiway cut, so this descends instead: first every operation takes the
order that suits its operands, in order of execution; then single operations, then blocks of
operations that share an order, change whenever that makes the whole cheaper. Every change lowers
the cost, a whole number, so it ends; the number of sweeps is bounded besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mizzen.passes.layout.freedom import row_major_of
from mizzen.passes.layout.network import Network, Node, Root, Use, root_cost
from mizzen.passes.layout.order import Order

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
            found = producer.space_order(wanted)
            if found is not None:
                yield producer, found
    for root in node.gives:
        given = node.result_order(order, root.value)
        for use in root.uses:
            if use.node is not None and given is not None and use.wanted_now() == root.order():
                found = use.space_order(given)
                if found is not None:
                    yield use.node, found
