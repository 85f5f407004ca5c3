"""What the graph of a network is like: its operations, groups, origins, values and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.compiler.tflite_reference import Kernels, evaluate
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.context import note_of
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.graph import DType, Operation, Quantization
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.builder import NetworkBuilder

from . import networks
from .kernels import kinds, lowered

SCALES = [0.25, 0.5, 0.125, 1.0]
X = Quantization((0.5,), (3,))
Y = Quantization((2.0,), (-11,))


def layer(activation: int = 1, *, stride: int = 2) -> bytes:
    """Return a convolution of 7x6 pixels, quantised per channel."""
    net = NetworkBuilder("layer")
    x = net.tensor("x", (1, 7, 6, 3), "int8", 0.5, 3)
    data = np.arange(4 * 9 * 3).reshape(4, 3, 3, 3).astype(np.int8)
    filters = net.constant("filters", data, SCALES)
    bias = net.constant("bias", np.arange(4, dtype=np.int32), [0.5 * each for each in SCALES])
    y = net.tensor("y", (1, 3, 2, 4) if stride == 2 else (1, 5, 4, 4), "int8", 2.0, -11)
    window = {"padding": 1, "stride_h": stride, "stride_w": stride}
    options = {**window, "fused_activation_function": activation}
    net.operator("CONV_2D", [x, filters, bias], [y], ("Conv2DOptions", options))
    return net.finish([x], [y])


def only(found: Lowered, kind: str) -> Operation:
    (operation,) = [operation for operation in found.graph if operation.kind == kind]
    return operation


def test_a_convolution_keeps_everything_that_a_matcher_needs() -> None:
    found = lowered(layer())
    assert kinds(found) == ["SLICE", "CONV2D", "RESCALE", "CLAMP"]
    conv, rescale, clamp = (only(found, kind) for kind in ("CONV2D", "RESCALE", "CLAMP"))
    source, weights, bias = conv.operands[:3]
    assert (source.shape, source.quantization) == ((1, 7, 5, 3), X)
    assert weights.quantization == Quantization(tuple(SCALES), (0, 0, 0, 0), 0)
    assert bias.quantization == Quantization((0.125, 0.25, 0.0625, 0.5), (0, 0, 0, 0), 0)
    assert (conv["stride"], conv["pad"]) == ((2, 2), (0, 0, 0, 0))
    assert rescale.result.quantization == clamp.result.quantization == Y
    assert (clamp["min_val"], clamp["max_val"]) == (-11, 127)


def test_an_activation_that_bounds_no_more_than_the_type_is_no_clamp() -> None:
    assert kinds(lowered(layer(0, stride=1))) == ["CONV2D", "RESCALE"]
    # RELU6 with scale 2.0: 0 is -11, 6 is -8.
    clamp = only(lowered(layer(3)), "CLAMP")
    assert (clamp["min_val"], clamp["max_val"]) == (-11, -8)


def test_weights_are_views_of_the_file() -> None:
    network = layer()
    weights = only(lowered(network), "CONV2D").operands[1].constant
    assert weights is not None
    assert np.shares_memory(weights, np.frombuffer(network, np.uint8))


def test_operations_have_the_origin_and_group_of_their_operator() -> None:
    found = lowered(chain())
    operators = found.model.main.operators
    for operation in found.graph:
        if not operation.kind.startswith("CONST"):
            operator = found.operator_of(operation)
            assert operator is not None
            assert operator is operators[operation.group or 0]
            assert operation.origin == found.model.origin(operator)


def chain() -> bytes:
    """Return operators of which some change nothing, so that two tensors could be one value."""
    net = NetworkBuilder("chain")
    names = ("x", "same", "again", "out")
    tensors = [net.tensor(name, (1, 4), "int8", 0.1, -128) for name in names]
    kinds = (("RESHAPE", None), ("CONCATENATION", None), ("RELU", None))
    for kind, before, after in zip(kinds, tensors, tensors[1:], strict=False):
        net.operator(kind[0], [before], [after], OPTIONS.get(kind[0]))
    return net.finish(tensors[:1], [tensors[3], tensors[1], tensors[0]])


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {"CONCATENATION": ("ConcatenationOptions", {})}


def test_every_tensor_is_a_value_of_its_own() -> None:
    found = lowered(chain())
    values = [found.value_of[index] for index in range(4)]
    assert not any(map(found.is_unsigned, values))
    assert len(set(values)) == 4
    assert [value.name for value in values] == ["x", "same", "again", "out"]
    assert [found.tensor_of[value] for value in values] == [0, 1, 2, 3]
    assert list(found.graph.outputs) == [values[3], values[1], values[0]]
    x = np.array([[-128, -5, 7, 127]], np.int8)
    assert all((array == x).all() for array in evaluate(found, [x]))


def test_an_unsigned_tensor_is_the_signed_one_less_128() -> None:
    net = NetworkBuilder("unsigned")
    x = net.tensor("x", (1, 4), "uint8", 0.1, 121)
    y = net.tensor("y", (1, 4), "uint8", 0.1, 121)
    net.operator("RELU", [x], [y])
    found = lowered(net.finish([x], [y]))
    value = found.value_of[x]
    assert (value.dtype, value.quantization) == (
        DType.INT8,
        Quantization((float(np.float32(0.1)),), (-7,)),
    )
    assert found.is_unsigned(value)
    given = np.array([[0, 120, 121, 255]], np.uint8)
    (got,) = evaluate(found, [given])
    assert got.tolist() == [[121, 121, 121, 255]]
    assert got.dtype == np.uint8


DEPTHWISE = [(6, 1, 2), (1, 5, 3), (3, 2, None)]


@pytest.mark.parametrize(("channels", "multiplier", "axis"), DEPTHWISE)
def test_depthwise_weights_have_an_axis_of_scales_if_one_axis_is_all_channels(
    channels: int, multiplier: int, axis: int | None
) -> None:
    net, outputs = NetworkBuilder("depthwise"), channels * multiplier
    x = net.tensor("x", (1, 4, 4, channels), "int8", 0.5, 3)
    scales = [0.25] * (outputs - 1) + [0.5]
    filters = net.constant("f", np.ones((1, 3, 3, outputs), np.int8), scales, axis=3)
    y = net.tensor("y", (1, 4, 4, outputs), "int8", 2.0, -11)
    options = {"depth_multiplier": multiplier, "stride_h": 1, "stride_w": 1}
    net.operator("DEPTHWISE_CONV_2D", [x, filters], [y], ("DepthwiseConv2DOptions", options))
    operation = only(lowered(net.finish([x], [y])), "DEPTHWISE_CONV2D")
    weights, bias = operation.operands[1:3]
    assert weights.shape == (3, 3, channels, multiplier)
    if axis is None:
        assert weights.quantization is None
    else:
        assert weights.quantization == Quantization(tuple(scales), (0,) * outputs, axis)
    assert bias.quantization is not None
    assert bias.quantization.scales == tuple(0.5 * scale for scale in scales)


def test_a_dense_layer_is_a_convolution_of_one_pixel() -> None:
    found = lowered(networks.dense(4, "int8"))
    assert [kind for kind in kinds(found) if kind != "CLAMP"] == [
        "RESHAPE",
        "CONV2D",
        "RESCALE",
        "RESHAPE",
    ]


def test_a_sum_of_bytes_has_two_rescales_for_each_operand() -> None:
    net = NetworkBuilder("sum")
    x, y = (net.tensor(name, (1, 4), "int8", scale, 5) for name, scale in (("x", 0.1), ("y", 0.3)))
    net.operator("ADD", [x, x], [y], ("AddOptions", {}))
    assert sorted(kinds(lowered(net.finish([x], [y])))) == ["ADD"] + ["RESCALE"] * 5


def softmax_between() -> bytes:
    """Return RELU, SOFTMAX, RELU."""
    net = NetworkBuilder("softmax")
    x = net.tensor("x", (1, 10), "int8", 0.1, 5)
    a = net.tensor("a", (1, 10), "int8", 0.1, 5)
    b = net.tensor("b", (1, 10), "int8", 1 / 256, -128)
    y = net.tensor("y", (1, 10), "int8", 1 / 256, -128)
    net.operator("RELU", [x], [a])
    net.operator("SOFTMAX", [a], [b], ("SoftmaxOptions", {"beta": 1.0}))
    net.operator("RELU", [b], [y])
    return net.finish([x], [y])


def test_what_has_no_form_is_custom_and_says_why() -> None:
    found = lowered(softmax_between())
    custom = only(found, "CUSTOM")
    assert isinstance(custom, Custom)
    assert (custom.operator_name, custom.domain_name) == ("tflite.SOFTMAX", "tflite")
    assert custom.group == 1
    note = note_of(custom)
    assert (note.operator, note.inputs, note.outputs) == (1, (1,), (2,))
    assert note.reason == "TOSA has no form of SOFTMAX that is known to be exact"
    assert custom.result.quantization == Quantization((1 / 256,), (-128,))


def test_a_refused_operator_leaves_nothing_behind() -> None:
    net = NetworkBuilder("refused")
    x = net.tensor("x", (1, 4), "int8", 0.1, 5)
    y = net.tensor("y", (1, 4), "int8", 0.1, 5)
    # The sum is lowered up to its activation, which no kernel has.
    net.operator("ADD", [x, x], [y], ("AddOptions", {"fused_activation_function": 4}))
    found = lowered(net.finish([x], [y]))
    (custom,) = found.graph
    assert isinstance(custom, Custom)
    assert note_of(custom).reason == "its fused activation is number 4"


def test_constants_and_state_are_no_operands_of_a_custom_operation() -> None:
    from mizzen.conformance.networks import lstm

    network = lstm("int8").build()
    found = lowered(network)
    custom = only(found, "CUSTOM")
    assert [value.name for value in custom.operands] == ["x"]
    assert [value.name for value in custom.results] == ["y"]


def test_state_of_several_operators_is_refused_when_it_is_computed() -> None:
    net = NetworkBuilder("state")
    x, y = (net.tensor(name, (1, 4), "int8", 0.1) for name in "xy")
    handle = net.resource("handle")
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "v"}))
    net.operator("ASSIGN_VARIABLE", [handle, x], [], ("AssignVariableOptions", {}))
    net.operator("READ_VARIABLE", [handle], [y], ("ReadVariableOptions", {}))
    found = lowered(net.finish([x], [y]))
    assert kinds(found) == ["CUSTOM"] * 3
    with pytest.raises(MizzenError) as caught:
        evaluate(found, [np.zeros((1, 4), np.int8)])
    assert caught.value.diagnostic.code == "E130"


def test_a_network_of_floats_is_refused() -> None:
    net = NetworkBuilder("floats")
    x, y = (net.tensor(name, (1, 4), "float32") for name in "xy")
    net.operator("RELU", [x], [y])
    with pytest.raises(MizzenError) as caught:
        lower(read(net.finish([x], [y]), "floats.tflite"))
    assert caught.value.diagnostic.code == "E107"


def test_tensors_of_no_numbers_are_refused() -> None:
    from mizzen.flatbuffer import read as read_file
    from mizzen.flatbuffer import write
    from mizzen.flatbuffer.tflite import SCHEMA, TensorType

    record = read_file(softmax_between(), SCHEMA, "file")
    record["subgraphs"][0]["tensors"][2]["type"] = int(TensorType.STRING)
    with pytest.raises(MizzenError) as caught:
        lower(read(write(record, SCHEMA), "words.tflite"))
    assert str(caught.value) == (
        'error[E132]: tensor 2 "b" must be of numbers to stand in a graph, not STRING\n'
        '  at   words.tflite, operator 1 SOFTMAX -> "b"\n'
        "  help convert the network without this operator, or leave it to the application"
    )


def test_floats_at_the_edge_are_computed_by_the_cpu() -> None:
    net = NetworkBuilder("edge")
    x = net.tensor("x", (1, 4), "float32")
    a, b = (net.tensor(name, (1, 4), "int8", 0.1, 5) for name in "ab")
    y = net.tensor("y", (1, 4), "float32")
    net.operator("QUANTIZE", [x], [a])
    net.operator("RELU", [a], [b])
    net.operator("DEQUANTIZE", [b], [y])
    found = lowered(net.finish([x], [y]))
    assert kinds(found) == ["CUSTOM", "CLAMP", "CUSTOM"]
    (got,) = evaluate(found, [np.array([[-1.0, 0.26, 1.0, 99.0]], np.float32)])
    np.testing.assert_allclose(got, [[0.0, 0.3, 1.0, 12.2]], rtol=1e-6)


def test_kernels_are_made_once() -> None:
    found = lowered(softmax_between())
    kernels = Kernels(found.model)
    x = np.arange(10, dtype=np.int8).reshape(1, 10)
    first, second = (evaluate(found, [x], kernels=kernels)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
