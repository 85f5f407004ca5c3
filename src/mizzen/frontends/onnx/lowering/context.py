"""The state of lowering one network: what its tensors stand for, and who computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.lowering.notes import (
    DEQUANTIZE,
    DOMAIN,
    NARROW,
    QUANTIZE,
    SIGNED,
    UNSIGNED,
    WIDEN,
    NodeRefusal,
    Step,
    node_note,
    step_note,
)
from mizzen.frontends.onnx.lowering.types import NUMBERS, graph_type, offset_of
from mizzen.frontends.onnx.lowering.types import SIGNED as SIGNED_TYPES
from mizzen.frontends.onnx.model import Array, Model, Node
from mizzen.frontends.quantized.constants import Constants
from mizzen.frontends.quantized.groups import Groups
from mizzen.frontends.quantized.terms import (
    Constant,
    Integers,
    Pending,
    Plain,
    Quantized,
    Real,
    Target,
    Term,
    Wide,
)
from mizzen.graph import DType, Graph, Quantization, Value
from mizzen.graph import TensorType as GraphType
from mizzen.ops import Builder
from mizzen.ops.limits import WindowLimits

DEQUANTIZE_LINEAR = "DequantizeLinear"
QUANTIZE_LINEAR = "QuantizeLinear"

UNQUANTIZED = NodeRefusal(
    "its output is not quantised, so the next operator takes floating-point numbers",
    "quantise the operators around it: put a QuantizeLinear after it",
)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A real tensor that is a function of each number of another.

    x  which integers stand for, or sums of a layer that the model does not quantise
    """

    x: Real | Pending
    of: Callable[[Array], Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of both."""
        return self.x.shape if isinstance(self.x, Pending) else self.x.value.shape

    def shares(self, other: Function) -> bool:
        """Whether both are functions of one tensor."""
        if isinstance(self.x, Pending) or isinstance(other.x, Pending):
            return self.x is other.x
        return self.x.value is other.x.value


class Context:
    """What is known while a network is lowered.

    terms      what a tensor stands for, by its name
    group_of   the computation that a node belongs to
    refusals   why a node stays with ONNX Runtime
    functions  tensors that are functions of one other, whatever lies between
    sums       tensors of sums that a bias can still go into: a function of the bias
    """

    def __init__(self, model: Model, limits: WindowLimits) -> None:
        self.model = model
        self.limits = limits
        self.graph = Graph(model.name)
        self.groups = Groups()
        self.terms: dict[str, Term] = {}
        self.group_of: dict[Node, int] = {}
        self.refusals: dict[Node, NodeRefusal] = {}
        self.functions: dict[str, Function] = {}
        self.sums: dict[str, Callable[[Constant], Pending | None]] = {}
        self.producer = {name: node for node in model.nodes for name in node.outputs if name}
        self._place = {node: place for place, node in enumerate(model.nodes)}
        self._host_nodes: dict[int, tuple[Node, ...]] = {}
        self._host_origins: dict[int, Origin] = {}
        self._computed: dict[str, Value] = {}
        self._quantized: dict[tuple[str, DType, Quantization], Value] = {}
        self._constants = Constants(self.graph)

    def builder(self, node: Node) -> Builder:
        """Return a builder whose operations belong to a node."""
        return Builder(self.graph, self.model.origin(node), self.group_of[node])

    def place(self, node: Node) -> int:
        """Return a node's place among the model's."""
        return self._place[node]

    def term(self, name: str) -> Term:
        """Return what a tensor stands for."""
        if name not in self.terms:
            self.terms[name] = constant_term(self.model.constants[name], name)
        return self.terms[name]

    def is_constant(self, name: str) -> bool:
        """Whether a tensor depends on no input."""
        return isinstance(self.term(name), (Constant, Integers))

    def unite(self, node: Node, other: Node) -> None:
        """Make the computations of two nodes one."""
        if node in self.group_of and other in self.group_of:
            self.groups.unite(self.group_of[node], self.group_of[other])

    def constant(self, constant: Constant, integers: Array, dtype: DType) -> Value:
        """Return a quantised constant as a value of the graph, the same one every time."""
        return self._constants.value(constant, integers, dtype)

    def standing(self, value: Value, own: Quantization, node: Node) -> Value:
        """Return integers that stand for real numbers as a node says; one tensor has one way."""
        if value.quantization is None:
            value.type = value.type.quantized(own)
        if value.quantization == own:
            return value
        if node not in self.group_of:
            self.group_of[node] = self.groups.new()
        return self.builder(node)("IDENTITY", value, quantization=own)

    def add_input(self, name: str) -> None:
        """Let the graph take a tensor."""
        type = graph_type(self.model.types[name], name, Origin(model=self.model.name))
        self.arrive(name, self.graph.add_input(type, name))

    def arrive(self, name: str, value: Value) -> Term:
        """Take note of a tensor as ONNX has it, and return what it stands for."""
        self._computed[name] = value
        if value.dtype in SIGNED_TYPES:
            type = GraphType(value.shape, SIGNED_TYPES[value.dtype])
            self.terms[name] = Quantized(self._edge(SIGNED, name, value, type))
        elif value.dtype in NUMBERS:
            self.terms[name] = Quantized(value)
        else:
            self.terms[name] = Plain(value)
        return self.terms[name]

    def plain(self, name: str) -> Value:
        """Return a tensor as ONNX has it, computed by ONNX Runtime if need be."""
        if name not in self._computed:
            self._computed[name] = self._plain_of(name)
        return self._computed[name]

    def _plain_of(self, name: str) -> Value:
        type = self.model.types[name]
        own = graph_type(type, name, self._origin_of(name))
        match self.term(name):
            case Plain(value):
                return value
            case Quantized(value) if offset_of(type.dtype):
                return self._edge(UNSIGNED, name, value, own)
            case Quantized(value):
                return value
            case Wide(value):
                return self._edge(WIDEN, name, value, own)
            case Real(value) as real if own.dtype is DType.FP32:
                step = Step.of(real.scale, real.zero_point, value.dtype)
                return self._edge(DEQUANTIZE, name, value, own, step_note(step))
            case Constant(array) | Integers(array) if name not in self.model.constants:
                return self.graph.constant(array.astype(type.dtype), own.dtype)
            case Constant() | Integers():
                return self.graph.constant(self.model.constants[name], own.dtype)
            case _:
                node = self.producer[name]
                self.compute(node, self.refusals.get(node) or UNQUANTIZED)
                return self._computed[name]

    def quantized(self, name: str, target: Target) -> Value:
        """Return a float tensor that ONNX Runtime or the caller has, quantised by the host."""
        key = (name, target.dtype, target.quantization)
        if key not in self._quantized:
            value = self.plain(name)
            type = GraphType(value.shape, target.dtype, target.quantization)
            step = Step(target.scale, target.zero_point, target.quant_min, target.quant_max)
            self._quantized[key] = self._edge(QUANTIZE, name, value, type, step_note(step))
        return self._quantized[key]

    def narrowed(self, name: str) -> Value:
        """Return integers of 64 bits in the 32 that an NPU takes."""
        value = self.plain(name)
        return self._edge(NARROW, name, value, GraphType(value.shape, DType.INT32))

    def compute(self, node: Node, refusal: NodeRefusal) -> None:
        """Let ONNX Runtime compute a node, from the tensors that ONNX has in front of it."""
        operands = [self.plain(name) for name in node.inputs if name and not self.is_constant(name)]
        names = [name for name in node.outputs if name]
        origin = self.model.origin(node)
        types = [graph_type(self.model.types[name], name, origin) for name in names]
        values = self.host(
            f"onnx.{node.kind}",
            operands,
            types,
            node_note(self.place(node), refusal),
            node,
        )
        self._computed.update(zip(names, values, strict=True))

    def host(
        self,
        operator: str,
        operands: Sequence[Value],
        types: Sequence[GraphType],
        note: bytes,
        node: Node,
    ) -> tuple[Value, ...]:
        """Add an operation of the host's for a node."""
        group = self.groups.new()
        self._host_nodes[group] = (*self._constant_sources(node), node)
        self._host_origins[group] = self.model.origin(node)
        builder = Builder(self.graph, self.model.origin(node), group)
        return builder.custom(
            operator, operands, types, domain_name=DOMAIN, implementation_attrs=note
        )

    def _constant_sources(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that make the constants which a node takes, in order."""
        sources: dict[Node, None] = {}
        for name in node.inputs:
            if name and self.is_constant(name) and name in self.producer:
                source = self.producer[name]
                sources.update(dict.fromkeys((*self._constant_sources(source), source)))
        return tuple(sources)

    def _edge(
        self, operator: str, name: str, value: Value, type: GraphType, note: bytes = b""
    ) -> Value:
        """Add the operation by which a tensor comes into the graph's form, or out of it."""
        origin, group = self._origin_of(name), self.groups.new()
        node = self.producer.get(name)
        is_own = operator == DEQUANTIZE and node is not None and node.kind == DEQUANTIZE_LINEAR
        self._host_nodes[group] = (node,) if is_own and node is not None else ()
        self._host_origins[group] = origin
        (result,) = Builder(self.graph, origin, group).custom(
            operator, [value], [type], domain_name=DOMAIN, implementation_attrs=note
        )
        return result

    def _origin_of(self, name: str) -> Origin:
        node = self.producer.get(name)
        if node is None:
            return Origin(model=self.model.name, name=name)
        return self.model.origin(node)

    def finished(self) -> Lowered:
        """Number the groups by their first operation, and say what each of them has."""
        members, origins = self._members(self.groups.numbered(self.graph))
        return Lowered(
            model=self.model,
            graph=self.graph,
            nodes={group: tuple(nodes) for group, nodes in members.items()},
            origins=origins,
            name_of=self._names(),
            offset_of=self._offsets(),
        )

    def _members(
        self, number: Callable[[int], int | None]
    ) -> tuple[dict[int, Sequence[Node]], dict[int, Origin]]:
        """Return the nodes of each group, in the model's order, and what it is named by."""
        members: dict[int, list[Node]] = {}
        for node, group in {**self._sources_of_groups(), **self.group_of}.items():
            if (place := number(group)) is not None:
                members.setdefault(place, []).append(node)
        ordered: dict[int, Sequence[Node]] = {
            group: sorted(nodes, key=self.place) for group, nodes in members.items()
        }
        origins = {
            group: self.model.origin(next((node for node in nodes if computes(node)), nodes[0]))
            for group, nodes in ordered.items()
        }
        for group, nodes in self._host_nodes.items():
            if (place := number(group)) is not None:
                ordered[place] = nodes
                origins[place] = self._host_origins[group]
        return ordered, origins

    def _sources_of_groups(self) -> dict[Node, int]:
        """Return the nodes that dequantise what a group takes, with the first such group."""
        groups: dict[Node, int] = {}
        for node in self.model.nodes:
            for name in node.inputs if node in self.group_of and computes(node) else ():
                source = self.producer.get(name)
                if source is not None and source.kind == DEQUANTIZE_LINEAR:
                    groups.setdefault(source, self.group_of[node])
        return groups

    def _names(self) -> dict[Value, str]:
        """Return the first tensor that each value is."""
        names: dict[Value, str] = {}
        for name, term in self.terms.items():
            if isinstance(term, (Quantized, Plain, Wide)):
                names.setdefault(term.value, name)
        for name, value in self._computed.items():
            names.setdefault(value, name)
        for name, term in self.terms.items():
            if isinstance(term, Real):
                names.setdefault(term.value, name)
        return names

    def _offsets(self) -> dict[str, int]:
        return {
            name: offset_of(self.model.types[name].dtype)
            for name, term in self.terms.items()
            if isinstance(term, Quantized) and offset_of(self.model.types[name].dtype)
        }


def computes(node: Node) -> bool:
    """Whether a node does more than turn real numbers into integers or back."""
    return node.kind not in (QUANTIZE_LINEAR, DEQUANTIZE_LINEAR)


def constant_term(array: Array, name: str) -> Term:
    """Return what a constant tensor stands for."""
    if array.dtype.kind == "f":
        return Constant(array.astype("float32", copy=False), source=name)
    return Integers(array)
