"""The state of lowering one program to integers, and a node on its way there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.frontends.quantized.constants import Constants
from mizzen.frontends.quantized.groups import Groups
from mizzen.frontends.quantized.scales import as_target, typed
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
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.call import Call, Move
from mizzen.frontends.torch.narrowing import is_narrowing, is_widening
from mizzen.frontends.torch.program import (
    Array,
    TorchProgram,
    kind_of,
    origin_of,
    results_of,
    tensor_type,
)
from mizzen.graph import DType, Graph, Quantization, Value
from mizzen.ops import Builder
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits

Result = Term | tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a node stays with PyTorch."""

    reason: str
    help: str | None


class Context:
    """What is known while a program is lowered."""

    def __init__(self, program: TorchProgram, limits: WindowLimits) -> None:
        self.program = program
        self.limits = limits
        self.graph = Graph(program.name)
        self.groups = Groups()
        self.terms: dict[Any, Result] = {}
        self.group_of: dict[Any, int] = {}
        self.refusals: dict[Any, NodeRefusal] = {}
        self.custom_nodes: dict[int, Any] = {}
        """Group to the one node that PyTorch computes in it, for groups of that kind."""
        self.computed: dict[Any, tuple[Value, ...]] = {}
        self._constants = Constants(self.graph)
        self._index = {node: index for index, node in enumerate(program.nodes)}

    def origin(self, node: Any) -> Origin:
        """Say where a node comes from."""
        return origin_of(node, self.program.name, self._index[node])

    def builder(self, node: Any) -> Builder:
        """Return a builder whose operations belong to a node."""
        return Builder(self.graph, self.origin(node), self.group_of[node])

    def term(self, node: Any) -> Term:
        """Return the term that a node with one result stands for."""
        term = self.terms[node]
        assert not isinstance(term, tuple), node
        return term

    def unite(self, node: Any, other: Any) -> None:
        """Make the computations of two nodes one."""
        if node in self.group_of and other in self.group_of:
            self.groups.unite(self.group_of[node], self.group_of[other])

    def constant(self, constant: Constant, integers: Array, dtype: DType) -> Value:
        """Return a quantised constant as a value of the graph, the same one every time."""
        return self._constants.value(constant, integers, dtype)

    def plain(self, node: Any) -> Value:
        """Return a node's tensor as PyTorch has it, computed by PyTorch if need be."""
        (value,) = self.plain_results(node)
        return value

    def plain_results(self, node: Any) -> tuple[Value, ...]:
        """Return all of a node's tensors as PyTorch has them."""
        if node not in self.computed:
            self.computed[node] = self._plain_of(node)
        return self.computed[node]

    def _plain_of(self, node: Any) -> tuple[Value, ...]:
        result = self.terms.get(node)
        match result:
            case Plain(value) | Quantized(value):
                return (value,)
            case tuple() if all(isinstance(term, Plain) for term in result):
                return tuple(term.value for term in result if isinstance(term, Plain))
            case Integers(array):
                return (self.graph.constant(array, tensor_type(node.meta["val"], None).dtype),)
            case _:
                return self.custom(node, self.refusals.get(node) or UNQUANTIZED)

    def custom(self, node: Any, refusal: NodeRefusal) -> tuple[Value, ...]:
        """Add the operation by which PyTorch computes a node, from PyTorch's inputs of it."""
        operands = [self.plain(arg) for arg in node.all_input_nodes if self.is_dynamic(arg)]
        origin = self.origin(node)
        several = isinstance(node.meta["val"], (tuple, list))
        types = [tensor_type(meta, origin) for meta in results_of(node)]
        group = self.groups.new()
        self.custom_nodes[group] = node
        if signed_offset(node):
            types = [replace(types[0], dtype=DType.INT8)]
        if types[0].dtype in (DType.INT8, DType.INT16) and not several:
            types = [types[0].quantized(quantization_of(node))]
        builder = Builder(self.graph, origin, group)
        return builder.custom(
            f"torch.{_edge_name(node) or kind_of(node)}",
            operands,
            types,
            domain_name="torch",
            implementation_attrs=note(node, refusal),
        )

    def is_dynamic(self, node: Any) -> bool:
        """Whether a node's tensor is not a constant of the program."""
        return not isinstance(self.terms.get(node), (Constant, Integers))


def note(node: Any, refusal: NodeRefusal) -> bytes:
    """Write down, with an operation of PyTorch's, which node it is and why PyTorch has it."""
    parts = {"node": node.name, "reason": refusal.reason, "help": refusal.help}
    return json.dumps(parts, sort_keys=True).encode()


def noted(operation: Custom) -> NodeRefusal:
    """Read why PyTorch has an operation."""
    parts = json.loads(operation.implementation_attrs)
    return NodeRefusal(parts["reason"], parts["help"])


UNQUANTIZED = NodeRefusal(
    "its output is not quantised, so the next operator takes floating-point numbers",
    "quantise the operators around it: set_global(), or set_module_name() for its module",
)

EDGES = {
    "quantized_decomposed.quantize_per_tensor": "quantize",
    "quantized_decomposed.dequantize_per_tensor": "dequantize",
}


def _edge_name(node: Any) -> str | None:
    if is_narrowing(node):
        return "narrow"
    return "widen" if is_widening(node) else EDGES.get(kind_of(node))


UNSIGNED_OFFSET = 128
"""By how much an unsigned byte is above the signed one that stands for it in the graph."""


def signed_offset(node: Any) -> int:
    """Return how far a node's unsigned bytes are above the graph's integers; 0 for others."""
    name, dtype = kind_of(node), str(node.args[5]) if len(node.args) > 5 else ""
    quantizes = name.endswith("quantize_per_tensor") and dtype == "torch.uint8"
    return UNSIGNED_OFFSET if quantizes else 0


def quantization_of(node: Any) -> Quantization | None:
    """Return the scale and zero point of a node that quantises per tensor."""
    if not kind_of(node).endswith("quantize_per_tensor"):
        return None
    return Quantization((float(node.args[1]),), (int(node.args[2]) - signed_offset(node),))


def is_dequantize(node: Any) -> bool:
    """Whether a node turns integers into the real numbers that they stand for."""
    return kind_of(node).startswith("quantized_decomposed.dequantize")


MOVED = (DType.BOOL, DType.INT8, DType.INT16, DType.INT32)
"""Types, besides quantised numbers, of which elements are moved and chosen: what NPUs have."""


class IntCall(Call[Term]):
    """A node that is being lowered to integers."""

    def __init__(self, context: Context, node: Any) -> None:
        super().__init__(node)
        self.context = context
        self.b = context.builder(node)

    def term(self, name: str) -> Term:
        """What an argument stands for; a computation that has no integers yet becomes part."""
        return self.term_of(self.arguments[name])

    def term_of(self, node: Any) -> Term:
        """What a node that is an argument stands for."""
        term = self.context.term(node)
        if isinstance(term, (Pending, Real)) and not is_dequantize(node):
            self.context.unite(self.node, node)
        return term

    def constant(self, name: str) -> Constant:
        """An argument that must be a constant real tensor."""
        term = self.term(name)
        if isinstance(term, Constant):
            return term
        raise RefusedError(f"its {name} is no constant")

    def real(self, name: str) -> Real:
        """An argument that must be a quantised real tensor; constants that are quantised too."""
        return self.real_of(self.arguments[name], name)

    def real_of(self, node: Any, name: str = "input") -> Real:
        """A node that must stand for a quantised real tensor."""
        name = "input" if name == "self" else name
        if not hasattr(node, "meta"):
            raise RefusedError(f"its {name} is the number {node}, which is not quantised")
        match self.term_of(node):
            case Real(value) as real:
                if value.dtype is DType.INT32:
                    raise RefusedError(f"its {name} has integers of 32 bits", QUANTIZE_NARROW)
                return real
            case Constant(_, integers, quantization) as real if (
                integers is not None and quantization is not None and quantization.axis is None
            ):
                dtype = DType(f"i{integers.dtype.itemsize * 8}")
                return Real(self.context.constant(real, integers, dtype))
            case Plain(value) if not value.dtype.is_float:
                raise RefusedError(
                    f"its {name} is of {value.dtype.value}, and it takes quantised numbers only"
                )
            case _:
                raise RefusedError(f"its {name} is not quantised", QUANTIZE_BEFORE)

    def moved(self, move: Move) -> Term:
        """Return the input with its elements moved, whatever it stands for."""
        return self._moved(self._movable(), move)

    def _movable(self) -> Term:
        term = self.term(self.first)
        return self.real(self.first) if isinstance(term, Constant) else term

    def _moved(self, term: Term, move: Move) -> Term:
        match term:
            case Real(value):
                return Real(move(value))
            case Quantized(value):
                return Quantized(move(value))
            case Pending(emit, _, low, high):
                return Pending(lambda target: move(emit(target)), self.shape, low, high)
            case Plain(value) if value.dtype in MOVED:
                return Plain(move(value))
            case Wide(value):
                return Wide(move(value))
            case _:
                raise RefusedError("its input is not quantised", QUANTIZE_BEFORE)

    def parted(self, moves: Sequence[Move]) -> tuple[Term, ...]:
        """Return several tensors that the input's elements are moved to."""
        term = self._movable()
        if isinstance(term, Pending):
            raise RefusedError("its input is not quantised", "quantise the operator before it")
        return tuple(self._moved(term, move) for move in moves)

    def itself(self) -> Term:
        """Return the input, which must be of the result's shape and type."""
        given = self[self.first].meta["val"]
        self.need(tuple(given.shape) == self.shape, "it changes the shape")
        same = given.dtype == self.node.meta["val"].dtype
        self.need(same, "it changes the type of the elements")
        return self.moved(lambda value: value)

    def alike(self, operands: Sequence[Any], build: Callable[..., Value]) -> Term:
        """Return the result that `build` makes of operands on the target's scale."""
        if self.node.meta["val"].dtype.is_floating_point is False:
            dtype = tensor_type(self.node.meta["val"], None).dtype
            return Plain(build(*(self.as_plain(operand, dtype) for operand in operands)))
        emitters = [self._alike(operand) for operand in operands]

        def emit(target: Target) -> Value:
            return typed(build(*(each(target) for each in emitters)), target)

        return Pending(emit, self.shape)

    def as_plain(self, operand: Any, dtype: DType) -> Value:
        """Return an operand, a node or a number, that is of integers of a type."""
        self.need(dtype in MOVED, f"it is of {dtype.value}, which no NPU takes")
        if isinstance(operand, float) and not operand.is_integer():
            raise RefusedError(f"its operand {operand} is no integer")
        if not hasattr(operand, "meta"):
            return self.b.constant(np.array([operand]), dtype)
        match self.term_of(operand):
            case Plain(value) if value.dtype is dtype:
                return value
            case Integers(array):
                return self.context.graph.constant(array, dtype)
            case _:
                raise RefusedError("its operands have different types")

    def _alike(self, operand: Any) -> Callable[[Target], Value]:
        """Return a function that gives an operand, a node or a number, on a target's scale."""
        number, shape = operand, (1,)
        if hasattr(operand, "meta"):
            term = self.term_of(operand)
            if not isinstance(term, Constant) or term.real.size != 1:
                real = self.real_of(operand)
                return lambda target: as_target(self.b, real, target)
            number, shape = term.real.item(), term.real.shape or (1,)
        return lambda target: self.b.constant(
            np.full(shape, target.quantize(float(number))), target.dtype
        )

    def truth(self, name: str) -> Value:
        """Return an argument that must be truth values."""
        given = self.arguments[name]
        if isinstance(given, (bool, int)):
            return self.b.constant(np.array([bool(given)]), DType.BOOL)
        return self.truth_of(given, name)

    def truth_of(self, node: Any, name: str = "mask") -> Value:
        """Return a node that must be of truth values."""
        match self.term_of(node):
            case Plain(value) if value.dtype is DType.BOOL:
                return value
            case Integers(array) if array.dtype == np.bool_:
                return self.context.graph.constant(array, DType.BOOL)
            case _:
                raise RefusedError(
                    f"its {'input' if name == 'self' else name} is no truth value",
                    "compare numbers with > or ==, and choose by the result",
                )

    def truths(self, value: Value) -> Term:
        """Return truth values as a result."""
        return Plain(value)


QUANTIZE_BEFORE = "quantise the model's part before it"
QUANTIZE_NARROW = "quantise to 8 or 16 bits, from which sums and products have 32"
