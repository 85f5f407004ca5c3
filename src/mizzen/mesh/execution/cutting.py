"""The operations of a tile: those of its layer, cut to what its box needs.

From the box of the output backwards, each operation says which box of each operand it needs; then
the operations are built again for these boxes, with their part of the constants. What lies outside
a tensor stays padding. The numbers are those of the whole layer, since none is computed otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array, DType, Graph, Operation, TensorType, Value
from mizzen.mesh.execution.demands import Demands, demands
from mizzen.mesh.network.boxes import Box, box_of, shape_of, slices, within
from mizzen.mesh.network.network import Layer, Network
from mizzen.mesh.network.ranges import product_of
from mizzen.mesh.program import Kernel
from mizzen.ops.data_layout import Pad
from mizzen.ops.tensor import Windowed


@dataclass(frozen=True, eq=False)
class Cut:
    """The operations of a tile.

    graph     its inputs are the boxes that it takes, then the partial sums that it adds
    takes     index of the layer's input and the box of it, for each such input of the graph
    sums      the result of the array of multipliers, if there is one
    product   the operation of the layer that gives it
    """

    graph: Graph
    takes: tuple[tuple[int, Box], ...]
    sums: Value | None
    product: Operation | None


def cut(network: Network, kernel: Kernel) -> Cut:
    """Return the operations of a tile. E531 for a layer that cannot be cut to such a box."""
    layer = network.layers[kernel.layer]
    assert layer.chain is not None, "networks of shapes only are not executed"
    product = product_of(layer.chain)
    if kernel.gives_sums and product is None:
        raise cannot(layer, "give partial sums: it has no convolution")
    last = product.result if kernel.gives_sums and product else layer.chain.outputs[0]
    box = kernel.box
    if len(last.shape) != len(box) or any(
        stop > extent for (_, stop), extent in zip(box, last.shape, strict=True)
    ):
        raise cannot(layer, f"give {list(box)} of a tensor of shape {list(last.shape)}")
    try:
        wanted = demands(layer.chain, last, box, kernel.channels)
        return _Cutting(layer, kernel, wanted, product).cut(last)
    except MizzenError as error:
        raise cannot(layer, f"be cut to {list(box)}: {error.diagnostic.message}") from error


def cannot(layer: Layer, what: str) -> MizzenError:
    """Make the error for a tile that a layer does not have."""
    return fail("E531", f"layer {layer.name!r} cannot {what}", origin=layer.origin)


class _Cutting:
    def __init__(
        self, layer: Layer, kernel: Kernel, wanted: Demands, product: Windowed | None
    ) -> None:
        assert layer.chain is not None
        self.chain = layer.chain
        self.kernel = kernel
        self.wanted = wanted
        self.product = product
        self.graph = Graph(layer.name)
        self.built: dict[Value, Value] = {}
        self.sums: Value | None = None

    def cut(self, last: Value) -> Cut:
        """Build the operations that a value needs."""
        takes = list[tuple[int, Box]]()
        for index, value in enumerate(self.chain.inputs):
            box = self.wanted.boxes.get(value)
            if box is not None:
                self.built[value] = self.graph.add_input(_cut_type(value, box), f"input{index}")
                takes.append((index, box))
        added = [self._partial(last, index) for index in range(self.kernel.adds_sums)]
        for operation in self.wanted.order:
            self._add(operation)
            if operation is self.product:
                self._add_sums(added)
        self.graph.set_outputs([self.built[last]])
        return Cut(self.graph, tuple(takes), self.sums, self.product)

    def _partial(self, last: Value, index: int) -> Value:
        if self.product is None:
            raise fail("E531", "no convolution is there to add partial sums to")
        result = self.product.result
        type = _cut_type(result, self.wanted.boxes[result])
        return self.graph.add_input(replace(type, dtype=DType.INT32), f"sums{index}")

    def _add_sums(self, added: list[Value]) -> None:
        assert self.product is not None
        self.sums = total = self.built[self.product.result]
        for sums in added:
            total = self.graph.add("ADD", (total, sums), (total.type,)).result
        self.built[self.product.result] = total

    def _add(self, operation: Operation) -> None:
        needs = self.wanted.needs[operation]
        if isinstance(operation, Pad) and needs[0] is None:
            self.built[operation.result] = self._padding(operation)
            return
        operands = [
            self._operand(value, need)
            for value, need in zip(operation.operands, needs, strict=True)
            if need is not None
        ]
        types = [
            _cut_type(value, self.wanted.boxes.get(value) or box_of(value.shape))
            for value in operation.results
        ]
        attributes = {**operation.attributes, **self.wanted.attributes[operation]}
        made = self.graph.add(operation.kind, operands, types, attributes, origin=operation.origin)
        self.built.update(zip(operation.results, made.results, strict=True))

    def _padding(self, operation: Pad) -> Value:
        """Return a box with nothing but padding in it."""
        filling = operation.pad_const.constant
        assert filling is not None, "the builder refuses a padding that is not constant"
        shape = shape_of(self.wanted.boxes[operation.result])
        return self.graph.constant(
            np.broadcast_to(filling.reshape(-1)[0], shape), operation.result.dtype
        )

    def _operand(self, value: Value, need: Box | Array) -> Value:
        """Return a box of a value: a part of a constant, or of what was built."""
        if isinstance(need, np.ndarray):
            return self.graph.constant(need, value.dtype)
        constant = value.constant
        if constant is not None:
            return self.graph.constant(self._part(value, constant, need), value.dtype)
        have, built = self.wanted.boxes[value], self.built[value]
        if have == need:
            return built
        start = np.array([first for first, _ in within(need, have)])
        operands = (
            built,
            self.graph.constant(start, DType.SHAPE),
            self.graph.constant(shape_of(need), DType.SHAPE),
        )
        return self.graph.add("SLICE", operands, (_cut_type(value, need),)).result

    def _part(self, value: Value, constant: Array, box: Box) -> Array:
        """Return a part of a constant; partial sums have no bias, which is added once."""
        whole = box == box_of(value.shape)
        part = constant if whole else np.ascontiguousarray(constant[slices(box)])
        product = self.product
        if self.kernel.gives_sums and product is not None and value is product.bias:
            return np.zeros_like(part)
        return part


def _cut_type(value: Value, box: Box) -> TensorType:
    return TensorType(shape_of(box), value.dtype, None)
