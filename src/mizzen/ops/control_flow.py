"""Control flow operators. Ref: TOSA 1.0, 2.16.

Values that bodies take from outside are operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, DType, Graph, TensorType, Value
from mizzen.ops.definition import Attribute, Operand, RuleError, Support, chapter, define, tensor


def cond_if(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Return the types of the branches' outputs."""
    condition, *passed = operands
    if condition.type.dtype is not DType.BOOL or condition.type.elements != 1:
        raise RuleError(f"the condition must be one bool, and is {plain(condition.type)}")
    then_graph, else_graph = attributes["then_graph"], attributes["else_graph"]
    _takes(then_graph, passed, "then_graph")
    _takes(else_graph, passed, "else_graph")
    results = [output.type for output in then_graph.outputs]
    _gives(else_graph, results, "else_graph")
    return tuple(results)


def while_loop(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Return the types of the operands."""
    condition, body = attributes["cond_graph"], attributes["body_graph"]
    _takes(condition, operands, "cond_graph")
    _takes(body, operands, "body_graph")
    _gives(body, [operand.type for operand in operands], "body_graph")
    outputs = [output.type for output in condition.outputs]
    if len(outputs) != 1 or outputs[0].dtype is not DType.BOOL or outputs[0].elements != 1:
        came = ", ".join(map(plain, outputs))
        raise RuleError(f"cond_graph must give one bool, and gives {came or 'nothing'}")
    return tuple(operand.type for operand in operands)


def plain(type: TensorType) -> str:
    """Return a type as text, without quantisation."""
    return str(type.quantized(None))


def _takes(graph: Graph, passed: Sequence[Value], name: str) -> None:
    _equal([value.type for value in graph.inputs], [value.type for value in passed], name, "take")


def _gives(graph: Graph, types: Sequence[TensorType], name: str) -> None:
    _equal([value.type for value in graph.outputs], types, name, "give")


def _equal(have: Sequence[TensorType], need: Sequence[TensorType], name: str, verb: str) -> None:
    came, must = ", ".join(map(plain, have)), ", ".join(map(plain, need))
    if came != must:
        raise RuleError(f"{name} must {verb} ({must}), and {verb}s ({came})")


DEFINITIONS = chapter(
    16,
    define(
        "COND_IF",
        tensor("condition", "bool"),
        Operand("input_list", "any", variadic=True),
        results=(),
        attributes=(Attribute("then_graph", Graph), Attribute("else_graph", Graph)),
        infer=cond_if,
        supports=(Support.EXT_CONTROLFLOW,),
    ),
    define(
        "WHILE_LOOP",
        Operand("input_list", "any", variadic=True),
        results=(),
        attributes=(Attribute("cond_graph", Graph), Attribute("body_graph", Graph)),
        infer=while_loop,
        supports=(Support.EXT_CONTROLFLOW,),
    ),
)
