"""Lower an exported program to one graph of TOSA operations.

Nodes are taken in order. A node that turns real numbers into integers ends a computation: what
came before it, from other integers on, becomes operations on integers. What has no integer form is
an operation that PyTorch computes, with the reason; so the graph is whole whatever the program is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.frontends.quantized.refusing import erase_unused_custom, ill_formed
from mizzen.frontends.quantized.scales import requantize, typed
from mizzen.frontends.quantized.terms import (
    Array,
    Constant,
    Integers,
    Pending,
    Plain,
    Quantized,
    Real,
    Target,
    Term,
)
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.call import lowering_of
from mizzen.frontends.torch.int_lowering.int_context import (
    Context,
    IntCall,
    NodeRefusal,
    Result,
    quantization_of,
    signed_offset,
)
from mizzen.frontends.torch.operators import overload_of, row_of
from mizzen.frontends.torch.operators.row import CPU
from mizzen.frontends.torch.program import (
    GETITEM,
    WITHOUT_RESULT,
    Role,
    State,
    TorchProgram,
    is_tensor,
    kind_of,
    mapped,
    results_of,
    tensor_of,
    tensor_type,
    without_gradient,
)
from mizzen.graph import DType, Graph, Quantization, Value
from mizzen.ops.limits import WindowLimits

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
QUANTIZE_CHANNELS = "quantized_decomposed.quantize_per_channel.default"
DEQUANTIZE_CHANNELS = "quantized_decomposed.dequantize_per_channel.default"


@dataclass(frozen=True, eq=False)
class Lowered:
    """A program as a graph, and how the two belong together.

    graph    inputs are the program's inputs, then its state; outputs likewise
    nodes    group to the FX nodes that are computed in it, in order
    node_of  value to the FX node that gives it
    value_of  FX node to its value, for integers and for what PyTorch computes
    constants  FX node to its tensor, for those that depend on no input
    """

    program: TorchProgram
    graph: Graph
    nodes: dict[int, tuple[Any, ...]]
    node_of: dict[Value, Any]
    value_of: dict[Any, Value]
    constants: dict[Any, Any]
    origins: dict[int, Origin]

    @property
    def states(self) -> tuple[State, ...]:
        """The buffers that the program changes."""
        return self.program.states


def lower(program: TorchProgram, limits: WindowLimits) -> Lowered:
    """Lower a program, for a target's limits. Raises E16x for what cannot be expressed at all."""
    context = Context(program, limits)
    _add_inputs(context)
    for node in program.nodes:
        if node.op == "call_function" and str(node.target) not in WITHOUT_RESULT:
            context.terms[node] = _lower_node(context, node)
    ends = [*program.outputs, *(state.write for state in program.states)]
    context.graph.set_outputs(_output(context, node) for node in ends)
    context.graph.erase_dead()
    erase_unused_custom(context.graph)
    return _finished(context)


def _add_inputs(context: Context) -> None:
    program = context.program
    ordered = [node for role in (Role.INPUT, Role.STATE) for node in _placeholders(program, role)]
    for node in ordered:
        type = tensor_type(node.meta["val"], context.origin(node))
        name: str = program.input_names.get(node.name, str(node.name))
        context.terms[node] = Plain(context.graph.add_input(type, name))
    for node in _placeholders(program, Role.CONSTANT):
        if node.users:
            context.terms[node] = _constant(program.array(node), node)


def _placeholders(program: TorchProgram, role: Role) -> list[Any]:
    return [node for node, own in program.roles.items() if own is role]


def _constant(array: Array, node: Any) -> Term:
    if array.dtype.kind == "f":
        return Constant(array.astype(np.float32, copy=False), source=node)
    return Integers(array)


def _lower_node(context: Context, node: Any) -> Result:
    match overload_of(node):
        case name if name == GETITEM:
            return _item(context, node)
        case name if name == QUANTIZE:
            return _quantize(context, node)
        case name if name == DEQUANTIZE:
            return _dequantize(context, node)
        case name if name in (QUANTIZE_CHANNELS, DEQUANTIZE_CHANNELS):
            return _channels(context, node)
        case name if name == READ_STATE and isinstance(context.terms[node.args[0]], Plain):
            return context.terms[node.args[0]]
        case _:
            return _operator(context, node)


READ_STATE = "mizzen.read_state.default"
"""The quantiser's copy of a buffer that is written later: in SSA form, the buffer itself."""


def _item(context: Context, node: Any) -> Result:
    source: Any = node.args[0]
    index: Any = node.args[1]
    results = context.terms[source]
    if not isinstance(results, tuple):
        return Plain(context.plain_results(source)[int(index)])
    if source in context.group_of:
        context.group_of[node] = context.group_of[source]
    if int(index) >= len(results) and not node.users:
        return results[0]
    return results[int(index)]


def _operator(context: Context, node: Any) -> Result:
    folded = _folded(context, node)
    if folded is not None:
        return folded
    context.group_of[node] = context.groups.new()
    entry = row_of(node)
    try:
        if entry is None:
            raise RefusedError(f"there is no TOSA form of {kind_of(node)} here", CPU)
        with ill_formed(CPU):
            return lowering_of(entry.integers, node)(IntCall(context, node))
    except RefusedError as refused:
        context.refusals[node] = NodeRefusal(refused.reason, refused.help)
        values = context.plain_results(node)
        terms = tuple(Plain(value) for value in values)
        return terms if isinstance(node.meta["val"], (tuple, list)) else terms[0]


def _folded(context: Context, node: Any) -> Result | None:
    """Compute a node whose inputs are constants of the program."""
    sources = node.all_input_nodes
    if any(context.is_dynamic(source) for source in sources):
        return None
    if not all(map(is_tensor, results_of(node))):
        return None
    arguments, named = (
        mapped(part, lambda source: _folded_input(context, source))
        for part in (node.args, node.kwargs)
    )
    result = without_gradient(node.target, *arguments, **named)
    if is_tensor(result):
        return _constant(result.numpy(), node)
    return tuple(_constant(item.numpy(), None) for item in result)


def _folded_input(context: Context, node: Any) -> Any:
    match context.terms[node]:
        case Constant(real):
            return tensor_of(real)
        case Integers(array):
            return tensor_of(array)
        case _:
            raise AssertionError(node)


def _quantize(context: Context, node: Any) -> Term:
    source = node.args[0]
    target = _target(node)
    term = context.term(source)
    if isinstance(term, (Pending, Real)) and source in context.group_of:
        context.group_of[node] = context.group_of[source]
    elif isinstance(term, Real):
        context.group_of[node] = context.groups.new()
    match term:
        case Pending(emit, _, low, high):
            bounded = _bounded(target, low, high)
            try:
                with ill_formed(CPU):
                    return Quantized(emit(bounded))
            except RefusedError as refused:
                context.refusals[source] = NodeRefusal(refused.reason, refused.help)
                return Quantized(_edge(context, node))
        case Real(value) as real:
            b = context.builder(node)
            return Quantized(requantize(b, value, real.scale, target, real.zero_point))
        case Constant(real):
            integers = _integers(real, node, target)
            return Integers(integers)
        case _:
            return Quantized(_edge(context, node))


def _edge(context: Context, node: Any) -> Value:
    """Let PyTorch quantise what it has."""
    (value,) = context.custom(
        node, NodeRefusal("it makes integers of floating-point numbers", None)
    )
    return typed(value, _target(node))


def _bounded(target: Target, low: float, high: float) -> Target:
    if not (isfinite(low) or isfinite(high)):
        return target
    return Target(target.dtype, target.quantization, target.quant_min, target.quant_max, low, high)


def _target(node: Any) -> Target:
    """Return the integers that a node gives; unsigned bytes are 128 less, and signed."""
    _, _, _, low, high, dtype = node.args[:6]
    quantization = quantization_of(node)
    assert quantization is not None
    offset = signed_offset(node)
    return Target(_dtype(dtype), quantization, int(low) - offset, int(high) - offset)


def _dtype(dtype: Any) -> DType:
    return {"int8": DType.INT8, "int16": DType.INT16, "int32": DType.INT32, "uint8": DType.INT8}[
        str(dtype).removeprefix("torch.")
    ]


def _integers(real: Array, node: Any, target: Target) -> Array:
    arguments = (tensor_of(real), *node.args[1:])
    integers: Array = node.target(*arguments).numpy()
    return (integers.astype(np.int64) - signed_offset(node)).astype(target.dtype.numpy)


def _dequantize(context: Context, node: Any) -> Term:
    source = node.args[0]
    match context.terms[source]:
        case Quantized(value):
            return Real(value)
        case Integers(array):
            quantization = quantization_of(node)
            assert quantization is not None
            scale, zero = np.float32(quantization.scale), quantization.zero_point
            real = (array.astype(np.float32) - np.float32(zero)) * scale
            return Constant(real, array, quantization, source)
        case Plain(value) if value.dtype is DType.UINT8:
            context.refusals[node] = UNSIGNED
            return Plain(context.plain(node))
        case Plain(value):
            value.type = value.type.quantized(quantization_of(node))
            return Real(value)
        case _:
            raise AssertionError(node)


UNSIGNED = NodeRefusal(
    "it takes bytes without a sign that nothing in the program made",
    "give the model floating-point numbers, and quantise them with set_io()",
)


def _channels(context: Context, node: Any) -> Term:
    """Quantise or dequantise a constant channel by channel; what is computed stays with PyTorch."""
    source, scales, zeros, axis = node.args[:4]
    term = context.terms[source]
    if not isinstance(term, (Integers, Constant)):
        context.refusals[node] = COMPUTED_WEIGHT
        return Plain(context.plain(node))
    scale = _array(context, scales).astype(np.float64)
    zero = _array(context, zeros).astype(np.int64)
    if isinstance(term, Integers):
        axis = axis % term.array.ndim
        shape = [-1 if index == axis else 1 for index in range(term.array.ndim)]
        real = (term.array - zero.reshape(shape)) * scale.reshape(shape)
        quantization = Quantization(tuple(scale.tolist()), tuple(zero.tolist()), axis)
        return Constant(real.astype(np.float32), term.array, quantization, source)
    arguments = (tensor_of(scale), tensor_of(zero), *node.args[3:])
    return Integers(node.target(tensor_of(term.real), *arguments).numpy())


COMPUTED_WEIGHT = NodeRefusal(
    "its numbers are computed, and only those of a constant have a scale for each channel",
    "quantise computed weights with one scale, or write the layer as a product (torch.matmul)",
)


def _array(context: Context, node: Any) -> Array:
    match context.terms[node]:
        case Constant(real):
            return real
        case Integers(array):
            return array
        case _:
            raise AssertionError(node)


def _output(context: Context, node: Any) -> Value:
    match context.terms[node]:
        case Constant(real):
            return context.graph.constant(real, DType.FP32)
        case _:
            return context.plain(node)


def _finished(context: Context) -> Lowered:
    """Number the groups by their first operation, and say which nodes each of them has."""
    number = context.groups.numbered(context.graph)
    members: dict[int, list[Any]] = {}
    for node, group in context.group_of.items():
        if (place := number(group)) is not None:
            members.setdefault(place, []).append(node)
    for group, node in context.custom_nodes.items():
        if (place := number(group)) is not None:
            members[place] = [node]
    return Lowered(
        program=context.program,
        graph=context.graph,
        nodes={group: tuple(nodes) for group, nodes in members.items()},
        node_of=_node_of(context),
        value_of=_value_of(context),
        constants=_tensors(context),
        origins={group: context.origin(nodes[0]) for group, nodes in members.items() if nodes},
    )


def _node_of(context: Context) -> dict[Value, Any]:
    """Return the first node of each value: nodes that do nothing with it come later."""
    places = {node: place for place, node in enumerate(context.terms)}
    values = _value_of(context)
    nodes: dict[Value, Any] = {}
    for node in sorted(values, key=lambda node: places.get(node, len(places))):
        nodes.setdefault(values[node], node)
    return nodes


def _value_of(context: Context) -> dict[Any, Value]:
    direct = {
        node: term.value
        for node, term in context.terms.items()
        if isinstance(term, (Quantized, Plain))
    }
    computed = {node: values[0] for node, values in context.computed.items() if len(values) == 1}
    return {**computed, **direct}


def _tensors(context: Context) -> dict[Any, Any]:
    tensors: dict[Any, Any] = {}
    for node, term in context.terms.items():
        match term:
            case Constant(real):
                tensors[node] = tensor_of(real)
            case Integers(array):
                tensors[node] = tensor_of(array)
            case _:
                pass
    return tensors
