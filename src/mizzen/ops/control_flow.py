"""Data nodes, custom operators, control flow and variables. Ref: TOSA 1.0, 2.14 to 2.18.

Values that the bodies of control flow take from outside are operands. Variables are tensors that
last from one execution to the next; TOSA bounds their element types to i8, f16 and f32, but as its
own tools do, this allows every type that a constant has.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType

import numpy as np

from mizzen.graph import Array, Attributes, DType, Graph, TensorType, Value
from mizzen.ops.definition import (
    IN_OUT,
    OUT,
    Attribute,
    RuleError,
    Shape,
    Support,
    TosaOperation,
    same,
    table,
    tensor,
    variadic,
)

TYPES = """
    PRO-INT/PRO-FP bool
    EXT-INT4       i4
    PRO-INT/PRO-FP i8
    PRO-INT/PRO-FP i16
    PRO-INT/PRO-FP i32
    EXT-INT16      i48
    PRO-FP         f16
    EXT-BF16       bf16
    PRO-FP         f32
    """


def const(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape of the values."""
    return (attributes["values"].shape,)


class Constant(TosaOperation, results=OUT, shapes=const):
    """A tensor or a shape whose elements are known."""

    values = Attribute[Array](np.ndarray)


Const = Constant.member("CONST", "2.14.1", rows=table("out_t", TYPES))
ConstShape = Constant.member("CONST_SHAPE", "2.18.1", rows=table("out_t", "PRO-INT/PRO-FP shape"))


class Identity(
    TosaOperation,
    kind="IDENTITY",
    section="2.14.2",
    results=IN_OUT,
    rows=table("in_out_t", TYPES),
    shapes=same,
):
    """The tensor itself."""

    input1 = tensor()


def custom(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Refuse: only who defines the operator knows its results."""
    raise RuleError("the results of a custom operator must be given; they do not follow")


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


def declare(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Return no result."""
    return ()


def read(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Return the type that the reader says the variable has."""
    return (attributes["type"],)


class Custom(TosaOperation, kind="CUSTOM", section="2.15.1", infer=custom):
    """An operation that is not TOSA's."""

    input_list = variadic()
    operator_name = Attribute(str)
    domain_name = Attribute(str, "")
    implementation_attrs = Attribute(bytes, b"")


class CondIf(
    TosaOperation,
    kind="COND_IF",
    section="2.16.1",
    infer=cond_if,
    supports=(Support.EXT_CONTROLFLOW,),
):
    """One of two graphs, as a condition says."""

    condition = tensor("bool")
    input_list = variadic()
    then_graph = Attribute(Graph)
    else_graph = Attribute(Graph)


class WhileLoop(
    TosaOperation,
    kind="WHILE_LOOP",
    section="2.16.2",
    infer=while_loop,
    supports=(Support.EXT_CONTROLFLOW,),
):
    """A graph on its own results, for as long as a condition holds."""

    input_list = variadic()
    cond_graph = Attribute(Graph)
    body_graph = Attribute(Graph)


class OfVariable(TosaOperation, infer=declare, supports=(Support.EXT_VARIABLE,)):
    """An operation on a variable."""

    name = Attribute(str)


class Variable(OfVariable, kind="VARIABLE", section="2.17.1"):
    """Declares a variable."""

    type = Attribute(TensorType)
    initial = Attribute[Array | None]((np.ndarray, NoneType), None)


class VariableWrite(OfVariable, kind="VARIABLE_WRITE", section="2.17.2"):
    """Writes a variable."""

    input1 = tensor("any")


class VariableRead(
    OfVariable, kind="VARIABLE_READ", section="2.17.3", results=(("output1", "any"),), infer=read
):
    """Reads a variable."""

    type = Attribute(TensorType)
