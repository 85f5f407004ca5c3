"""Lower a network to one graph of TOSA operations.

Nodes are taken in order. A QuantizeLinear ends a computation: what came before it, from other
integers on, becomes operations on integers. What has no integer form is an operation that ONNX
Runtime computes, with the reason; so the graph is whole whatever the network is.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mizzen.frontends.onnx.lowering.call import OnnxCall, within
from mizzen.frontends.onnx.lowering.context import (
    DEQUANTIZE_LINEAR,
    QUANTIZE_LINEAR,
    Context,
)
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.lowering.notes import QUANTIZE, NodeRefusal, Step, step_note
from mizzen.frontends.onnx.lowering.parameters import (
    ACTIVATIONS,
    Parameters,
    need_centred,
    need_one,
    target_of,
)
from mizzen.frontends.onnx.lowering.types import NUMBERS, signed
from mizzen.frontends.onnx.model import Model, Node
from mizzen.frontends.onnx.operators import CPU, Missing, operator_of
from mizzen.frontends.quantized.refusing import erase_unused_custom, ill_formed
from mizzen.frontends.quantized.scales import requantize, typed
from mizzen.frontends.quantized.terms import (
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
from mizzen.graph import DType, Value
from mizzen.graph import TensorType as GraphType
from mizzen.ops.limits import WindowLimits

Result = Term | tuple[Term, ...]


def lower(model: Model, limits: WindowLimits) -> Lowered:
    """Lower a network, for a target's limits. E194 for tensors of types that the graph has not."""
    context = Context(model, limits)
    for name in model.inputs:
        context.add_input(name)
    for node in model.nodes:
        _lower_node(context, node)
    context.graph.set_outputs([context.plain(name) for name in model.outputs])
    context.graph.erase_dead()
    erase_unused_custom(context.graph)
    for name, value in zip(model.outputs, context.graph.outputs, strict=True):
        value.name = value.name or name
    return context.finished()


def _lower_node(context: Context, node: Node) -> None:
    try:
        with ill_formed(CPU):
            _take(context, node, _result(context, node))
    except RefusedError as refused:
        context.group_of.pop(node, None)
        context.refusals[node] = NodeRefusal(refused.reason, refused.help)
        context.compute(node, context.refusals[node])
        for name in node.outputs:
            if name:
                context.arrive(name, context.plain(name))


def _result(context: Context, node: Node) -> Result:
    match node.domain, node.kind:
        case "", kind if kind == QUANTIZE_LINEAR:
            return _quantize(context, node)
        case "", kind if kind == DEQUANTIZE_LINEAR:
            return _dequantize(context, node)
        case _:
            return _operator(context, node)


def _take(context: Context, node: Node, result: Result) -> None:
    terms = result if isinstance(result, tuple) else (result,)
    for name, term in zip(node.outputs, terms, strict=False):
        if name:
            context.terms[name] = term


def _operator(context: Context, node: Node) -> Result:
    context.group_of[node] = context.groups.new()
    return lowering_of(node)(OnnxCall(context, node))


def lowering_of(node: Node) -> Callable[[OnnxCall], Any]:
    """Return the function that lowers a node. RefusedError with the reason where there is none."""
    operator = operator_of(node.domain, node.kind)
    if operator is None:
        kind = f"{node.domain}.{node.kind}" if node.domain else node.kind
        raise RefusedError(f"there is no TOSA form of {kind} here", CPU)
    if isinstance(operator.form, Missing):
        raise RefusedError(operator.form.reason.format(kind=node.kind), operator.form.help)
    module, _, name = operator.form.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)


def _quantize(context: Context, node: Node) -> Term:
    source, result = node.inputs[0], node.outputs[0]
    term = context.term(source)
    if isinstance(term, Constant):
        return _constant_integers(context, node, term)
    target = target_of(context, node)
    producer = context.producer.get(source)
    if isinstance(term, (Pending, Real)):
        context.group_of[node] = (
            context.group_of[producer] if producer in context.group_of else context.groups.new()
        )
    match term:
        case Pending(emit, _, low, high):
            try:
                with ill_formed(CPU):
                    return Quantized(emit(within(target, low, high)))
            except RefusedError as refused:
                assert producer is not None
                context.refusals[producer] = NodeRefusal(refused.reason, refused.help)
                return Quantized(_edge(context, node, target))
        case Real(value) as real:
            b = context.builder(node)
            return Quantized(requantize(b, value, real.scale, target, real.zero_point))
        case _:
            assert context.model.types[result]
            return Quantized(_edge(context, node, target))


def _constant_integers(context: Context, node: Node, term: Constant) -> Term:
    (name,) = node.outputs
    dtype = context.model.types[name].dtype.name
    if dtype not in ACTIVATIONS:
        raise RefusedError(f"it gives integers of {dtype}")
    return Integers(Parameters.of(context, node, name).integers(term.real, dtype))


def _edge(context: Context, node: Node, target: Target) -> Value:
    """Let the host quantise what it has."""
    context.group_of.pop(node, None)
    source = context.plain(node.inputs[0])
    if source.dtype is not DType.FP32:
        raise RefusedError(f"it quantises numbers of {source.dtype.value}")
    step = Step(target.scale, target.zero_point, target.quant_min, target.quant_max)
    type = GraphType(source.shape, target.dtype)
    (value,) = context.host(QUANTIZE, [source], [type], step_note(step), node)
    return typed(value, target)


def _dequantize(context: Context, node: Node) -> Term:
    source = node.inputs[0]
    parameters = Parameters.of(context, node, source)
    match context.term(source):
        case Integers(array):
            integers = signed(array)
            reals = parameters.reals(integers)
            return Constant(reals, integers, parameters.quantization, source)
        case Quantized(value) | Plain(value) if value.dtype in (*NUMBERS, DType.INT32):
            need_one(parameters)
            need_centred(parameters, value.dtype)
            _need_zero_of_32_bits(parameters, value.dtype)
            return Real(context.standing(value, parameters.quantization, node))
        case _:
            dtype = context.model.types[source].dtype.name
            raise RefusedError(f"it dequantises computed numbers of {dtype}")


def _need_zero_of_32_bits(parameters: Parameters, dtype: DType) -> None:
    if dtype is DType.INT32 and parameters.zeros.any():
        raise RefusedError("its integers of 32 bits have a zero point")
