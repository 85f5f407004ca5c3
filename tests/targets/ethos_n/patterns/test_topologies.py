"""Networks of several operators: branches, parts, joins, several inputs and outputs, their order.

The cases are those of Apache TVM's `test_topologies.py`. Bounds add up along the longest path.
"""

from __future__ import annotations

import numpy as np

from mizzen.graph import DType
from mizzen.partition import Device, extract
from mizzen.targets.ethos_n.patterns import generate

from .graphs import FOUR_TOPS, Net, differences, kinds, names, placed, whole
from .test_compiled import check


def test_split_sum_concatenation() -> None:
    net = Net()
    x, y = net.input(1, 16, 16, 16, q=(0.1, 5)), net.input(1, 16, 16, 16, q=(0.1, 5))
    left, right = net.split(x, (8, 8), axis=2)
    other, _ = (net.clamp(part, -128, 100) for part in net.split(y, (8, 8), axis=2))
    net.outputs(net.concat(net.combined("ADD", left, other, (0.1, 5)), right, axis=2), _)
    assert names(net.graph) == ["split", "split", "clip", "clip", "qnn_add", "qnn.concatenate"]
    assert max(differences(net)) <= 1
    check(net, FOUR_TOPS)


def test_residual() -> None:
    net = Net()
    x = net.conv(net.input(1, 8, 8, 16), 16, q=(0.3, -5))
    y = net.conv(x, 16, q=(0.9, 2))
    net.outputs(net.combined("ADD", x, y, (0.95, 1)))
    assert kinds(whole(net)) == ["Convolution", "Convolution", "Addition"]
    # A step of the first layer is 3.6 % of one of the second for each of 144 weights.
    assert max(differences(net)) <= 3
    check(net, FOUR_TOPS)


def test_order_of_outputs_and_inputs() -> None:
    net = Net()
    first, second = net.input(1, 8, 8, 16), net.input(1, 6, 6, 32)
    b = net.clamp(second, -50, 60)
    a = net.clamp(first, -40, 70)
    net.outputs(a, b)
    generated = whole(net)
    assert [operand.info.shape for operand in generated.outputs] != []
    assert differences(net) == [0, 0]
    check(net, FOUR_TOPS)
    shapes = [generated.inputs[place].info.shape for place in generated.input_order]
    assert shapes == [operand.info.shape for operand in generated.network.inputs]
    (region,) = placed(net.graph).regions
    part = extract(net.graph, region.groups)
    for value, operand, place in zip(
        part.outputs, generated.outputs, generated.output_order, strict=True
    ):
        assert operand.info.shape == value.shape
        assert generated.network.outputs[place] is operand


def test_every_output_has_a_buffer_of_its_own() -> None:
    net = Net()
    x = net.clamp(net.input(1, 8, 8, 16), -50, 60)
    net.outputs(x, net.reshape(x, 1, 1024))
    generated = whole(net)
    assert generated.output_order == (0, 1)
    assert kinds(generated) == ["Relu", "Reshape"]
    assert differences(net) == [0, 0]
    check(net, FOUR_TOPS)


def test_every_operand_has_a_user() -> None:
    """The library takes no network with a dangling operand."""
    net = Net()
    x = net.pool("MAX_POOL2D", net.input(1, 16, 16, 16), (2, 2), (2, 2))
    net.outputs(net.dense(net.concat(x, net.clamp(x, -10, 20), axis=1), 10))
    generated = whole(net)
    for operand, users in generated.network.users().items():
        node = generated.network[operand.operation_id]
        assert users or node.kind == "Constant", node
    check(net, FOUR_TOPS)


def test_several_regions() -> None:
    net = Net()
    x = net.conv(net.input(1, 8, 8, 16), 16)
    b = net.begin("REVERSE")
    x = b("REVERSE", x, axis=1, quantization=x.quantization)
    net.outputs(net.conv(x, 16))
    found = placed(net.graph)
    assert [region.device for region in found.regions] == [Device.NPU, Device.CPU, Device.NPU]
    for region in (found.regions[0], found.regions[2]):
        generated = generate(extract(net.graph, region.groups).graph, FOUR_TOPS)
        assert kinds(generated) == ["Convolution"]


def test_origins_lead_to_the_users_operators() -> None:
    net = Net()
    x = net.clamp(net.conv(net.input(1, 8, 8, 16), 16), -20, 90)
    net.outputs(net.pool("MAX_POOL2D", x, (2, 2), (2, 2)))
    found = {node.kind: node.origin for node in whole(net).network}
    assert [found[kind].kind for kind in ("Convolution", "Relu", "Pooling")] == [  # pyright: ignore[reportOptionalMemberAccess] each has an origin
        "CONV_2D",
        "RELU",
        "MAX_POOL2D",
    ]


def test_a_change_of_shape_costs_nothing_between_others() -> None:
    net = Net()
    x = net.clamp(net.input(1, 8, 8, 16), -50, 60)
    net.outputs(net.dense(net.reshape(x, 1, 1024), 10))
    assert kinds(whole(net)) == ["Relu", "Reshape", "FullyConnected"]
    check(net, FOUR_TOPS)


def test_inputs_have_the_shape_that_is_wanted() -> None:
    net = Net()
    net.outputs(net.dense(net.input(1, 4, 4, 16), 10))
    assert [operand.info.shape for operand in whole(net).inputs] == [(1, 1, 1, 256)]


def test_unsigned_tensors_stay_unsigned() -> None:
    net = Net()
    x = net.input(1, 8, 8, 16, q=(0.05, 130), dtype=DType.UINT8)
    b = net.begin("MAX_POOL_2D")
    pooled = net.graph.add(
        "MAX_POOL2D", (x,), (x.type.with_shape((1, 4, 4, 16)),),
        {"kernel": (2, 2), "stride": (2, 2), "pad": (0, 0, 0, 0)}, origin=b.origin, group=b.group,
    ).result  # fmt: skip
    net.outputs(pooled)
    generated = whole(net)
    assert generated.outputs[0].info.data_type.dtype == np.uint8
    assert generated.outputs[0].info.quantization.zero_point == 130
