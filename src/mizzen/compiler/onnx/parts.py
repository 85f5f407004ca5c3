"""Cut parts of an ONNX network out, for ONNX Runtime to compute on their own.

What a part takes and gives are values of the graph. Most hold a tensor of the network, in its type
or in that with the other sign. Some hold integers where the network has real numbers: elements
that were moved before they were rounded. For these the part begins with a DequantizeLinear of its
own, or ends with a QuantizeLinear, which changes no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.artifact.onnx_steps import is_convertible
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.model import ONNX, Array, Model, Node, TensorType
from mizzen.frontends.onnx.writing import submodel
from mizzen.graph import Value


@dataclass(frozen=True, eq=False)
class OnnxPart:
    """A part of a network: the bytes of an ONNX file, what it takes and what it gives."""

    network: bytes
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def cut(lowered: Lowered, inputs: Sequence[Value], outputs: Sequence[Value]) -> OnnxPart:
    """Return the part of a network from some values to others."""
    return _Cut(lowered, inputs, outputs).part()


class _Cut:
    def __init__(self, lowered: Lowered, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.model = lowered.model
        self.name_of = lowered.name_of
        self.inputs = inputs
        self.outputs = outputs
        self.types: dict[str, TensorType] = {}
        self.constants: dict[str, Array] = {}
        self.before: list[Node] = []
        self.after: list[Node] = []

    def part(self) -> OnnxPart:
        """Return the part, with what it takes of what there is."""
        held = {self.name_of[value]: value for value in self.inputs}
        taken = {name: self._taken(name, value) for name, value in held.items()}
        wanted = [self.name_of[value] for value in self.outputs]
        given = [self._given(name, value) for name, value in zip(wanted, self.outputs, strict=True)]
        nodes = tuple(needed(self.model, wanted, held))
        used = {name for node in nodes for name in node.inputs} | set(wanted)
        names = [name for name in held if name in used]
        begins = {taken[name] for name in names}
        before = [node for node in self.before if node.inputs[0] in begins]
        model = self._with_own()
        network = submodel(
            model,
            (*before, *nodes, *self.after),
            tuple(taken[name] for name in names),
            tuple(given),
            model.types,
        )
        return OnnxPart(network, tuple(held[name] for name in names), tuple(self.outputs))

    def _with_own(self) -> Model:
        return replace(
            self.model,
            types={**self.model.types, **self.types},
            constants={**self.model.constants, **self.constants},
        )

    def _taken(self, name: str, value: Value) -> str:
        """Return the part's name of what it takes, and make real numbers of it where need be."""
        if self._is_same(name, value):
            return name
        integers, parameters = self._integers(f"{name}:integers", value)
        self.before.append(self._node("DequantizeLinear", (integers, *parameters), name))
        return integers

    def _given(self, name: str, value: Value) -> str:
        if self._is_same(name, value):
            return name
        integers, parameters = self._integers(f"{name}:result", value)
        self.after.append(self._node("QuantizeLinear", (name, *parameters), integers))
        return integers

    def _is_same(self, name: str, value: Value) -> bool:
        return is_convertible(np.dtype(value.dtype.numpy), self.model.types[name].dtype)

    def _integers(self, name: str, value: Value) -> tuple[str, tuple[str, str]]:
        """Add a tensor of integers, and return its name and those of its scale and zero point."""
        quantization = value.quantization
        assert quantization is not None, "integers for floats have a scale"
        dtype = np.dtype(value.dtype.numpy)
        scale = np.array(quantization.scale, np.float32)
        zero = np.array(quantization.zero_point, dtype)
        self.types[name] = TensorType(dtype, value.shape)
        for suffix, array in (("scale", scale), ("zero", zero)):
            self.constants[f"{name}:{suffix}"] = array
            self.types[f"{name}:{suffix}"] = TensorType(array.dtype, array.shape)
        return name, (f"{name}:scale", f"{name}:zero")

    def _node(self, kind: str, inputs: tuple[str, ...], output: str) -> Node:
        return Node(-1, kind, ONNX, output, inputs, (output,))


def needed(model: Model, wanted: Iterable[str], held: Iterable[str]) -> Iterator[Node]:
    """Return the nodes that compute tensors from those that are held, in the model's order."""
    producer = {name: node for node in model.nodes for name in node.outputs if name}
    known = set(held)
    waiting, nodes = [name for name in wanted if name not in known], set[Node]()
    while waiting:
        node = producer.get(waiting.pop())
        if node is None or node in nodes:
            continue
        nodes.add(node)
        waiting += [name for name in node.inputs if name and name not in known]
    return (node for node in model.nodes if node in nodes)
