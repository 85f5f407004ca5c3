"""Write the graph anew in the orders that were chosen; the pass that chooses them and does so."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.graph import Array, Attributes, DType, Graph, Operation, Value
from mizzen.ops.data_layout import Reshape, Transpose
from mizzen.ops.tensor import Conv2d
from mizzen.passes.layout.choice import Edges, Network, Node, Root, Use, choose, network
from mizzen.passes.layout.order import (
    Freedom,
    Memory,
    Movement,
    Order,
    Shape,
    canonical,
    movement,
    refined,
    row_major_of,
)
from mizzen.passes.pipeline import Pass


def rewrite(graph: Graph, network: Network) -> None:
    """Make every operation work in its node's order, moving memory where orders differ."""
    writer = _Writer(graph)
    for value in graph.inputs:
        writer.hold(network.roots[value], row_major_of(value.shape), value)
    for node in network.nodes:
        writer.write(node)
    outputs = list(graph.outputs)
    taken = {*graph.inputs, *outputs}
    for use in network.outputs:
        old = outputs[use.index]
        new = writer.output(use, old, taken)
        taken.add(new)
        if new is not old and old not in graph.inputs:
            old.name, new.name = "", old.name or new.name
        outputs[use.index] = new
    graph.set_outputs(outputs)
    graph.erase_dead()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.held: dict[Root, list[tuple[Order, Value]]] = {}
        self.shapes: dict[Shape, Value] = {}

    def hold(self, root: Root, order: Order, value: Value) -> None:
        """Note that a value is the root's tensor, in memory in an order."""
        self.held.setdefault(root, []).append((order, value))

    def write(self, node: Node) -> None:
        """Make an operation work in its node's order."""
        free = node.freedom
        memory = None if free is None else self._memory(node, free)
        if free is None or memory is None:
            self._keep(node)
        elif free.follows:
            self._write_anew(node, memory)
        else:
            self._permute_channels(node, free)

    def provide(self, root: Root, order: Order, shape: Shape, user: Operation | None) -> Value:
        """Return a root's tensor in an order and shape, moved or reshaped if need be."""
        entries = self.held[root]
        for held, value in entries:
            if held == order and value.shape == shape:
                return value
        if root.producer is not None and root.producer.is_pliant:
            return self._computed(root, root.producer, order, shape)
        for held, value in entries:
            if held == order:
                return self._reshaped(root, order, value, shape, user)
        held, value = entries[0]
        step = movement(held, order, value.shape, shape)
        if step is None:
            own = self.provide(root, row_major_of(root.value.shape), root.value.shape, user)
            step = movement(row_major_of(root.value.shape), order, own.shape, shape)
            assert step is not None, "memory in the model's order can be moved to any other"
            value = own
        return self._moved(root, order, value, step, shape, user)

    def _computed(self, root: Root, node: Node, order: Order, shape: Shape) -> Value:
        """Return a value computed with constants only, computed in an order and shape."""
        operation = node.operation
        operands = list(operation.operands)
        assert node.freedom is not None
        for index in node.freedom.tensors:
            whole = operands[index].type.elements > 1
            memory = shape if whole else (1,) * len(shape)
            operands[index] = self._constant(operands[index], order if whole else (), memory)
        type = Memory(node.freedom.space, shape).type_of(root.value, operation)
        added = self.graph.add_beside(
            operation, operation.kind, operands, type, operation.attributes
        )
        self.hold(root, order, added)
        return added

    def output(self, use: Use, old: Value, taken: set[Value]) -> Value:
        """Return an output: as it was, or a tensor that is neither an input nor another output."""
        new = self.provide(use.root, use.view, old.shape, None)
        if new not in taken or new is old:
            return new
        return self._add("IDENTITY", (new,), new.shape, {}, None)

    def _moved(
        self,
        root: Root,
        order: Order,
        value: Value,
        step: Movement,
        shape: Shape,
        user: Operation | None,
    ) -> Value:
        if value.shape != step.shape:
            value = self._reshape(value, step.shape, user)
        moved = self._add("TRANSPOSE", (value,), step.result, {"perms": step.perms}, user)
        if moved.shape == shape:
            self.hold(root, order, moved)
            return moved
        return self._reshaped(root, order, moved, shape, user)

    def _reshaped(
        self, root: Root, order: Order, value: Value, shape: Shape, user: Operation | None
    ) -> Value:
        result = self._reshape(value, shape, user)
        self.hold(root, order, result)
        return result

    def _reshape(self, value: Value, shape: Shape, user: Operation | None) -> Value:
        return self._add("RESHAPE", (value, self._shape(shape)), shape, {}, user)

    def _shape(self, numbers: Shape) -> Value:
        if numbers not in self.shapes:
            self.shapes[numbers] = self.graph.constant(numbers, DType.SHAPE)
        return self.shapes[numbers]

    def _add(
        self,
        kind: str,
        operands: Sequence[Value],
        shape: Shape,
        attributes: Attributes,
        user: Operation | None,
    ) -> Value:
        """Add an operation on the user's behalf; without one, on that of the operand's giver."""
        type = operands[0].type.with_shape(shape)
        return self.graph.add_beside(user or operands[0].producer, kind, operands, type, attributes)

    def _keep(self, node: Node) -> None:
        """Leave the operation in the model's order."""
        operation = node.operation
        for use in node.takes:
            value = self.provide(use.root, use.view, use.value.shape, operation)
            self.graph.set_operand(operation, use.index, value)
        for root in node.gives:
            self.hold(root, row_major_of(root.value.shape), root.value)

    def _memory(self, node: Node, free: Freedom) -> Memory | None:
        """Say what the operation looks like in memory; None if as in the model."""
        own = node.order == row_major_of(free.space)
        if free.uniform:
            shape = self._shape_at_hand(node)
            if shape is not None:
                return None if own and shape == free.space else Memory(free.space, shape)
            if not own and not free.last:
                return Memory(free.space, tuple(steps for steps, _ in node.order))
        if own:
            return None
        loops = refined(node.order, free.space)
        assert loops is not None, "an order was chosen that the operation cannot have"
        ones = (1,) * (len(free.space) - len(loops))
        return Memory(free.space, ones + tuple(loop.steps for loop in loops), loops)

    def _shape_at_hand(self, node: Node) -> Shape | None:
        """Return the shape of an operand that already is in memory in the wanted order."""
        assert node.freedom is not None
        elements = prod(node.freedom.space)
        for use in node.takes:
            if use.freedom is not None and prod(use.value.shape) == elements:
                wanted = use.wanted_now()
                for held, value in self.held[use.root]:
                    if held == wanted and node.freedom.fits(value.shape):
                        return value.shape
        return None

    def _write_anew(self, node: Node, memory: Memory) -> None:
        operation = node.operation
        uses = {use.index: use for use in node.takes}
        operands = [
            self._operand(node, memory, index, uses.get(index))
            for index in range(len(operation.operands))
        ]
        added = self.graph.add(
            operation.kind,
            operands,
            [memory.type_of(value, operation) for value in operation.results],
            memory.attributes_of(operation),
            origin=operation.origin,
            group=operation.group,
        )
        for root, value in zip(node.gives, added.results, strict=True):
            self.hold(root, root.order(), value)

    def _operand(self, node: Node, memory: Memory, index: int, use: Use | None) -> Value:
        operand = node.operation.operands[index]
        numbers = memory.parameter(node.operation, index)
        if numbers is not None:
            return self._shape(numbers)
        if node.freedom is None or index not in node.freedom.tensors:
            return operand
        return self._tensor(node, operand, use, memory.shape_of(operand.shape))

    def _tensor(self, node: Node, operand: Value, use: Use | None, shape: Shape) -> Value:
        if use is not None:
            return self.provide(use.root, use.wanted_now(), shape, node.operation)
        assert node.freedom is not None
        order = node.freedom.operand_order(node.order, operand.shape) if prod(shape) > 1 else ()
        assert order is not None, "an order was chosen that a constant cannot have"
        return self._constant(operand, order, shape)

    def _constant(self, value: Value, order: Order, shape: Shape) -> Value:
        values = value.constant
        assert values is not None
        memory = np.ascontiguousarray(values).reshape(-1)[_walk(order)].reshape(shape)
        constant = self.graph.constant_like(value, memory)
        constant.name, value.name = value.name, ""
        return constant

    def _permute_channels(self, node: Node, free: Freedom) -> None:
        """Let the weights of a CONV2D follow the order of its input's channels."""
        operation = node.operation
        assert isinstance(operation, Conv2d)
        for use in node.takes:
            value = self.provide(use.root, use.wanted_now(), use.value.shape, operation)
            self.graph.set_operand(operation, use.index, value)
        weights = operation.weight
        loops = refined(node.order, free.space)
        assert loops is not None, "an order was chosen that the operation cannot have"
        channels = [(loop.steps, loop.stride) for loop in loops if loop.dim == 3]
        others = prod(weights.shape[:3])
        order = canonical([(others, weights.shape[3]), *channels])
        self.graph.set_operand(
            operation, Conv2d.weight.index, self._constant(weights, order, weights.shape)
        )
        for root in node.gives:
            self.hold(root, row_major_of(root.value.shape), root.value)


def _walk(order: Sequence[tuple[int, int]]) -> Array:
    """Return the indices of the elements in an order."""
    indices = np.zeros(1, np.int64)
    for steps, stride in order:
        indices = (indices[:, None] + np.arange(steps) * stride).reshape(-1)
    return indices


VIEWS = (Reshape, Transpose)


def layout(edges: Edges) -> Pass:
    """Return the pass that lets each operation work in the order that costs least in all."""

    def run(graph: Graph) -> bool:
        if not any(isinstance(operation, VIEWS) for operation in graph):
            return False
        before = graph.version
        net = network(graph, edges)
        choose(net)
        rewrite(graph, net)
        return graph.version != before

    return Pass("layout", run)


LAYOUT = layout(Edges.KEPT)


def wanted_orders(graph: Graph) -> dict[Value, Order]:
    """Return, of the inputs whose users all want one order, that order, were moving them free."""
    net = network(graph, Edges.FREE)
    choose(net)
    wanted = {value: {use.wanted_now() for use in net.roots[value].uses} for value in graph.inputs}
    return {value: orders.pop() for value, orders in wanted.items() if len(orders) == 1}
