"""Where a network's numbers become the graph's integers, and where they end."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.graph import DType
from mizzen.ops.control_flow import Custom

from .networks import Network, Scale, computed, lowered, on_host

NUMBERS = np.random.default_rng(1).normal(size=(2, 3, 5)).astype(np.float32) * 3
SIGNED = Scale(0.0213, 3)
UNSIGNED = Scale(0.0213, 131, "uint8")
WIDE = Scale(0.00031, 0, "int16")
WIDE_UNSIGNED = Scale(0.00031, 32768, "uint16")


def clipped(scale: Scale, result: Scale, upper: float) -> Network:
    """Return a network that quantises, cuts at 0 and an upper bound, and quantises again."""
    network = Network(opset=21)
    x = network.both(network.input("x", NUMBERS.shape), scale)
    low, high = (network.constant(np.float32(bound)) for bound in (0.0, upper))
    network.outputs.append(network.both(network.add("Clip", x, low, high), result))
    return network


@pytest.mark.parametrize("scale", [SIGNED, UNSIGNED, WIDE, WIDE_UNSIGNED])
def test_float_inputs_are_quantised_and_outputs_dequantised_by_the_host(scale: Scale) -> None:
    lowering = lowered(clipped(scale, scale, 1.5))
    assert on_host(lowering) == {}
    (one,) = computed(lowering, NUMBERS)
    wanted = scale.quantize(np.clip(scale.dequantize(scale.quantize(NUMBERS)), 0, 1.5))
    np.testing.assert_array_equal(one, scale.dequantize(wanted))


def test_bytes_without_a_sign_are_128_less_in_the_graph() -> None:
    network = Network()
    x = network.dequantize(network.input("x", (4, 8), np.uint8), UNSIGNED)
    network.outputs.append(network.quantize(network.add("Relu", x), UNSIGNED))
    lowering = lowered(network)
    (given,) = lowering.graph.inputs
    (result,) = lowering.graph.outputs
    assert (given.dtype, result.dtype) == (DType.UINT8, DType.UINT8)
    assert (given.name, result.name) == ("x", network.outputs[0])
    assert lowering.offset_of == {"x": 128, network.outputs[0]: 128}
    names = {row.operator_name for row in lowering.graph if isinstance(row, Custom)}
    assert names == {"onnx.signed", "onnx.unsigned"}
    integers = np.arange(100, 132, dtype=np.uint8).reshape(4, 8)
    (one,) = computed(lowering, integers)
    np.testing.assert_array_equal(one, np.maximum(integers, 131))


def test_16_bits_with_a_zero_point_stay_on_the_host() -> None:
    lowering = lowered(clipped(WIDE, Scale(0.00031, 5, "int16"), 1.0))
    assert on_host(lowering)["QuantizeLinear"] == "its integers of 16 bits have a zero point"


def test_one_tensor_dequantised_in_two_ways() -> None:
    """The graph has a scale with each tensor, so the second is another one."""
    network = Network()
    x = network.input("x", (3, 4), np.int8)
    one = network.dequantize(x, SIGNED)
    other = network.dequantize(x, Scale(0.5, -1))
    network.outputs += [
        network.quantize(network.add("Relu", one), SIGNED),
        network.quantize(network.add("Relu", other), SIGNED),
    ]
    integers = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    first, second = computed(lowered(network), integers)
    np.testing.assert_array_equal(first, np.maximum(integers, 3))
    wanted = SIGNED.quantize(np.maximum(Scale(0.5, -1).dequantize(integers), 0))
    np.testing.assert_array_equal(second, wanted)


def test_what_has_no_integers_is_the_runtimes_with_a_reason() -> None:
    network = Network()
    x = network.both(network.input("x", (1, 4)), SIGNED)
    network.outputs.append(network.both(network.add("Det", x), SIGNED))
    network.nodes[-3] = ("LpNormalization", *network.nodes[-3][1:])
    lowering = lowered(network)
    reason = "there is no TOSA form of LpNormalization here: a norm takes squares and roots of sums"
    assert on_host(lowering) == {"LpNormalization": reason}
    names = {row.operator_name: row.group for row in lowering.graph if isinstance(row, Custom)}
    group = names["onnx.LpNormalization"]
    assert group is not None
    assert [node.kind for node in lowering.nodes[group]] == ["LpNormalization"]
    assert lowering.origins[group].kind == "LpNormalization"


def test_groups_have_the_nodes_around_an_operator() -> None:
    lowering = lowered(clipped(SIGNED, SIGNED, 1.0))
    kinds = [[node.kind for node in nodes] for nodes in lowering.nodes.values()]
    assert ["DequantizeLinear", "Clip", "QuantizeLinear"] in kinds
    (origin,) = (origin for origin in lowering.origins.values() if origin.kind == "Clip")
    assert origin.operator == 2


def test_a_channels_scale_of_computed_numbers_is_the_hosts() -> None:
    network = Network()
    scale = Scale([0.1, 0.2, 0.3], [0, 0, 0], axis=1)
    network.outputs.append(network.quantize(network.input("x", (2, 3, 5)), scale))
    assert "only those of a constant" in on_host(lowered(network))["QuantizeLinear"]


def test_clip_on_integers_alone() -> None:
    network = Network()
    x = network.input("x", (256,), np.uint8)
    low, high = (network.constant(np.uint8(bound)) for bound in (10, 200))
    network.outputs.append(network.add("Clip", x, low, high))
    integers = np.arange(256, dtype=np.uint8)
    (one,) = computed(lowered(network), integers)
    np.testing.assert_array_equal(one, integers.clip(10, 200))
