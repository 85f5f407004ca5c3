"""Adds composites to a network of the Support Library.

The same code adds a composite to a region's network and, for asking whether it is supported, to
one of its own. A value of the graph that no composite gives is an input of the network.

Elements stay in their order whatever the shape, so a change of shape costs nothing until somebody
wants the other one: an operand may have another shape than its value.
"""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.graph import Array, Value
from mizzen.targets.ethos_n.network import Network, Node, Operand
from mizzen.targets.ethos_n.operations import (
    Operation,
    ReinterpretQuantization,
    Reshape,
)
from mizzen.targets.ethos_n.patterns.findings import unfit
from mizzen.targets.ethos_n.patterns.values import filled, info_of, quantization_of
from mizzen.targets.ethos_n.tensors import QuantizationInfo, Shape, TensorInfo


class Emission:
    """A network in the making, and what values of the graph are in it.

    inputs  values that are inputs, in the order in which they were first wanted
    """

    def __init__(self) -> None:
        self.network = Network()
        self.inputs: dict[Value, Operand] = {}
        self.origin: Origin | None = None
        """Where what is added comes from."""
        self._operands: dict[Value, Operand] = {}
        self._aliases: dict[Value, Value] = {}
        self._shaped: dict[tuple[Operand, Shape], Operand] = {}

    def operand(self, value: Value, shape: Shape | None = None) -> Operand:
        """Return a value in a shape of as many elements; its own, filled to four extents, if none.

        UnfitError if it cannot be a feature map.
        """
        wanted = shape or filled(value.shape)
        return self._in_shape(self._found(value, wanted), wanted)

    def as_it_is(self, value: Value) -> Operand:
        """Return a value in whatever shape it has, for those who look at single elements only."""
        return self._found(value, filled(value.shape))

    def _found(self, value: Value, shape: Shape) -> Operand:
        while value in self._aliases:
            value = self._aliases[value]
        found = self._operands.get(value)
        if found is None:
            if value.constant is not None:
                raise unfit(
                    "constant-feature-map",
                    "feature maps must be computed or given, and this one is a constant",
                    help="compute what depends on constants only before",
                )
            found = self.network.add_input(info_of(value, shape), self.origin)
            self._operands[value] = self.inputs[value] = found
        return found

    def _in_shape(self, operand: Operand, shape: Shape) -> Operand:
        if operand.info.shape == shape:
            return operand
        key = (operand, shape)
        if key not in self._shaped:
            self._shaped[key] = self.add(Reshape(shape), operand)
        return self._shaped[key]

    def add(self, operation: Operation, *inputs: Operand) -> Operand:
        """Add an operation with one output and give that."""
        return self.add_node(operation, *inputs).operand

    def add_node(self, operation: Operation, *inputs: Operand) -> Node:
        """Add an operation with any number of outputs."""
        return self.network.add(operation, *inputs, origin=self.origin)

    def constant(self, info: TensorInfo, data: Array) -> Operand:
        """Add weights or a bias; `data` is brought into the info's type."""
        array = np.asarray(data, info.data_type.dtype)
        return self.network.add_constant(info, array, self.origin)

    def bind(self, value: Value, operand: Operand) -> None:
        """Say that a value is an operand, whose numbers are read as the graph says."""
        found = quantization_of(value)
        if found is not None and len(found.scales) == 1:
            wanted = QuantizationInfo(found.zero_point, (found.scale,))
            operand = self.reinterpreted(operand, wanted)
        self._operands[value] = operand

    def reinterpreted(self, operand: Operand, wanted: QuantizationInfo) -> Operand:
        """Return an operand's numbers, read with a quantisation."""
        if operand.info.quantization == wanted:
            return operand
        return self.add(ReinterpretQuantization(wanted), operand)

    def alias(self, value: Value, source: Value) -> None:
        """Say that a value has the elements of another, in the same order."""
        if quantization_of(value) == quantization_of(source):
            self._aliases[value] = source
        else:
            self.bind(value, self.as_it_is(source))
