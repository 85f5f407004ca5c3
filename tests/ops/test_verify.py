"""What the verifier finds: each graph here is wrong in one way, and in no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mizzen.graph import DType, Graph, Operation, Quantization, RoundingMode, TensorType, Value
from mizzen.ops import Builder, Support, verify

I8, I16, I32 = DType.INT8, DType.INT16, DType.INT32


def network() -> Graph:
    """A convolution, rescaled, with its input and output in another layout."""
    graph = Graph()
    b = Builder(graph, group=1)
    x = graph.add_input(TensorType((1, 3, 8, 8), I8, Quantization((0.5,), (3,))), "x")
    zero, zeros = b.constant([0], I8), b.constant(np.zeros(24), I32)
    data = b("TRANSPOSE", x, perms=(0, 2, 3, 1))
    weight = b.constant(np.ones((24, 3, 3, 3)), I8, Quantization((0.1,) * 24, (0,) * 24, 0))
    sums = b("CONV2D", data, weight, zeros, b.constant([3], I8), zero, pad=(1,) * 4, stride=(1, 1))
    scaled = rescale(b, sums, zero)
    graph.set_outputs([b("TRANSPOSE", scaled, perms=(0, 3, 1, 2))])
    return graph


def rescale(b: Builder, value: Value, zero_point: Value, **attributes: Any) -> Value:
    given: dict[str, Any] = {
        "scale32": True,
        "per_channel": False,
        "rounding_mode": RoundingMode.DOUBLE_ROUND,
    }
    multiplier, shift = b.constant([1 << 30], I32), b.constant([35], I8)
    operands = (value, multiplier, shift, b.constant([0], value.dtype), zero_point)
    return b("RESCALE", *operands, **given | attributes)


def only(graph: Graph, kind: str) -> Operation:
    (operation,) = (operation for operation in graph if operation.kind == kind)
    return operation


def found(graph: Graph, *supports: Support) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in verify(graph, supports or None)]


def test_a_good_graph() -> None:
    assert verify(network()) == []
    assert verify(network(), [Support.PRO_INT]) == []


def set_operand(kind: str, index: int, values: Any, dtype: DType) -> Callable[[Graph], None]:
    def change(graph: Graph) -> None:
        graph.set_operand(only(graph, kind), index, graph.constant(values, dtype))

    return change


def set_attribute(kind: str, **attributes: object) -> Callable[[Graph], None]:
    return lambda graph: only(graph, kind).attributes.update(attributes)


def unknown(graph: Graph) -> None:
    graph.set_outputs([graph.add("CONV", (), [TensorType((1,), I8)]).result])


def one_operand(graph: Graph) -> None:
    (x,) = graph.inputs
    graph.set_outputs([graph.add("ADD", [x], [TensorType((1,), I8)]).result])


def without_attribute(graph: Graph) -> None:
    del only(graph, "CONV2D").attributes["pad"]


def not_constant(graph: Graph) -> None:
    value = graph.add_input(TensorType((1,), I8))
    graph.set_operand(only(graph, "RESCALE"), 4, value)


def foreign(graph: Graph) -> None:
    value = Graph().add_input(TensorType((1, 8, 8, 3), I8))
    graph.set_operand(only(graph, "CONV2D"), 0, value)


def foreign_output(graph: Graph) -> None:
    graph.set_outputs([Graph().add_input(TensorType((1,), I8), "y")])


def result_as_input(graph: Graph) -> None:
    graph.set_inputs([*graph.inputs, only(graph, "RESCALE").result])


def twice(graph: Graph) -> None:
    graph.set_inputs([*graph.inputs, *graph.inputs])


def cycle(graph: Graph) -> None:
    conv, scaled = only(graph, "CONV2D"), only(graph, "RESCALE")
    graph.set_operand(conv, 0, scaled.result)


def uses(graph: Graph) -> None:
    conv = only(graph, "CONV2D")
    conv.result.uses[conv] = 1


def other_type(graph: Graph) -> None:
    result = only(graph, "CONV2D").result
    result.type = TensorType((1, 8, 8, 25), I32)


def empty(graph: Graph) -> None:
    graph.add_input(TensorType((2, 0), I8), "nothing")


def scales(graph: Graph) -> None:
    value = only(graph, "CONV2D").operands[1]
    value.type = value.type.quantized(Quantization((0.1,) * 24, (0,) * 24, 1))


def no_axis(graph: Graph) -> None:
    value = only(graph, "CONV2D").operands[1]
    value.type = value.type.quantized(Quantization((0.1,) * 24, (0,) * 24, 4))


def wide_constant(graph: Graph) -> None:
    graph.constant([7, 8], DType.INT4)


def host_type(graph: Graph) -> None:
    (x,) = graph.inputs
    value = graph.constant([1], DType.INT64)
    graph.add("ADD", [value, x], [TensorType((1,), DType.INT64)])


def undeclared(graph: Graph) -> None:
    Builder(graph)("VARIABLE_READ", name="state", type=TensorType((2,), I8))


def other_variable(graph: Graph) -> None:
    b = Builder(graph)
    b.many("VARIABLE", name="state", type=TensorType((2,), I8))
    b.many("VARIABLE_WRITE", b.constant([1], I8), name="state")


WRONG: dict[str, tuple[Callable[[Graph], None], str, str]] = {
    "unknown": (unknown, "E801", "an operation must be one of TOSA 1.0, and is CONV"),
    "operands": (one_operand, "E802", "ADD: operands must be 2 (input1, input2), and are 1"),
    "types": (
        set_operand("CONV2D", 1, np.ones((24, 3, 3, 3)), I16),
        "E803",
        "CONV2D: has no form for element types i8, i16, i32, i8, i8",
    ),
    "missing": (without_attribute, "E804", "CONV2D: pad must be given"),
    "more": (set_attribute("CONV2D", groups=1), "E804", "CONV2D: has no attribute groups"),
    "type of an attribute": (
        set_attribute("RESCALE", per_channel=1),
        "E804",
        "RESCALE: per_channel must be bool, and is 1",
    ),
    "enumeration": (
        set_attribute("RESCALE", rounding_mode="double"),
        "E804",
        "RESCALE: rounding_mode must be RoundingMode, and is 'double'",
    ),
    "length": (
        set_attribute("CONV2D", stride=(1, 1, 1)),
        "E804",
        "CONV2D: stride must be 2 int, and is (1, 1, 1)",
    ),
    "elements": (
        set_attribute("CONV2D", stride=(1, 1.0)),
        "E804",
        "CONV2D: stride must be 2 int, and is (1, 1.0)",
    ),
    "accumulator": (
        set_attribute("CONV2D", acc_type=DType.INT48),
        "E804",
        "CONV2D: acc_type must be i32 for i8, i8, i32, i8, i8, and is i48",
    ),
    "not constant": (not_constant, "E805", "RESCALE: output_zp must be a constant"),
    "shape": (
        set_attribute("CONV2D", dilation=(4, 5)),
        "E806",
        "CONV2D: padded size - 1 - (kernel - 1) * dilation must be a multiple of the stride, and "
        "is 10 - 1 - 2 * 5 for stride 1",
    ),
    "multiplier": (
        set_operand("RESCALE", 1, [-1], I32),
        "E806",
        "RESCALE: multipliers must not be negative, and one is -1",
    ),
    "shift": (
        set_operand("RESCALE", 2, [1], I8),
        "E806",
        "RESCALE: shifts must be from 2 to 62, and one is 1",
    ),
    "zero point": (
        set_operand("RESCALE", 3, [1], I32),
        "E806",
        "RESCALE: input_zp must be 0 for i32, and is 1",
    ),
    "scale16": (
        set_attribute("RESCALE", scale32=False),
        "E806",
        "RESCALE: multiplier must be i32 if scale32 is set, else i16",
    ),
    "unsigned": (
        set_attribute("RESCALE", output_unsigned=True),
        "E806",
        "RESCALE: only i8 and i16 can be taken as unsigned, and the types are i32 and i8",
    ),
    "wide": (wide_constant, "E806", "CONST: values must be i4, from -8 to 7"),
    "foreign": (
        foreign,
        "E807",
        "CONV2D: operands must be values of the graph, not %?: tensor<1x8x8x3xi8>",
    ),
    "foreign output": (
        foreign_output,
        "E807",
        "outputs must be values of the graph, not %y: tensor<1xi8>",
    ),
    "result as input": (
        result_as_input,
        "E807",
        "an input must come from outside, and %?: tensor<1x8x8x24xi8> is a result",
    ),
    "twice": (twice, "E807", "an input must be one once, and one is there twice"),
    "cycle": (cycle, "E807", "the graph must have no cycle, but CONV2D needs its own result"),
    "uses": (
        uses,
        "E807",
        "%?: tensor<1x8x8x24xi32> must have the uses that the operations have of it",
    ),
    "result": (
        other_type,
        "E808",
        "CONV2D: must give tensor<1x8x8x24xi32>, and gives tensor<1x8x8x25xi32>",
    ),
    "empty": (empty, "E808", "input nothing: sizes must be positive, and are (2, 0)"),
    "scales": (scales, "E808", "CONST: must have 3 scales and zero points, and has 24 and 24"),
    "axis": (
        no_axis,
        "E808",
        "CONST: the axis of scales must be one of (24, 3, 3, 3), and is 4",
    ),
    "host": (host_type, "E803", "CONST of i64: only CUSTOM must take it, and ADD does"),
    "undeclared": (
        undeclared,
        "E807",
        "VARIABLE_READ: a variable must be declared, and state is not",
    ),
    "variable": (
        other_variable,
        "E808",
        "VARIABLE_WRITE: variable state must be tensor<2xi8>, and is tensor<1xi8>",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    change, code, message = WRONG[name]
    graph = network()
    change(graph)
    assert (code, message) in found(graph)


def test_profiles() -> None:
    graph = Graph()
    b = Builder(graph)
    x = graph.add_input(TensorType((1, 2, 2, 1), I16))
    y = b("MAX_POOL2D", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))
    graph.set_outputs([b("CAST", y, dtype=DType.FP32)])
    assert found(graph, Support.PRO_INT, Support.EXT_INT16) == [
        ("E809", "CAST: needs PRO-FP for i16, f32, which is not allowed")
    ]
    assert found(graph, Support.PRO_INT, Support.PRO_FP) == [
        ("E809", "MAX_POOL2D: needs EXT-INT16 for i16, i16, which is not allowed")
    ]


def test_types_of_the_host_are_for_custom_operations() -> None:
    graph = Graph()
    b = Builder(graph)
    x = graph.add_input(TensorType((2,), DType.INT64))
    one = b.constant([1], DType.INT64)
    b.custom("torch.add", [x, one], [x.type])
    assert found(graph) == []


def test_graphs_within_are_verified() -> None:
    graph = Graph()
    b = Builder(graph)
    body = Graph("body")
    inner = Builder(body)
    x = body.add_input(TensorType((1,), I32))
    body.set_outputs([inner("ADD", x, x)])
    condition = graph.add_input(TensorType((), DType.BOOL))
    y = graph.add_input(TensorType((1,), I32))
    b.many("COND_IF", condition, y, then_graph=body, else_graph=body)
    assert found(graph) == []
    only(body, "ADD").result.type = TensorType((2,), I32)
    must = "then_graph must give"
    assert ("E808", "ADD: must give tensor<1xi32>, and gives tensor<2xi32>") in found(graph)
    assert not [message for _, message in found(graph) if must in message]
    assert ("E809", "COND_IF: needs EXT-CONTROLFLOW for bool, i32, i32, which is not allowed") in (
        found(graph, Support.PRO_INT)
    )
