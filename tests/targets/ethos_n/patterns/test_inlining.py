"""Regions go back to the CPU where nothing in them computes much.

The cases are those of Apache TVM's `test_inline_partitions.py`.
"""

from __future__ import annotations

from mizzen.graph import Graph, Operation, Value
from mizzen.partition import Device, Partition, partition
from mizzen.targets.ethos_n.patterns import INLINED, Covering, legality, unprofitable

from .graphs import FOUR_TOPS, Net


def inlined(graph: Graph) -> Partition:
    """Place a graph until every region is worth its place."""
    covering = Covering(graph, FOUR_TOPS)
    legal = legality(covering)

    def never(operation: Operation) -> bool:
        del operation
        return True

    # Every group counts as the model's edge: nothing else takes regions off the NPU.
    found = partition(graph, legal, edge=never)
    refused = dict(unprofitable(found, covering))
    while unprofitable(found, covering):
        found = partition(graph, legal, edge=never, refused=refused)
        refused.update(unprofitable(found, covering))
    return found


def places(found: Partition) -> list[tuple[Device, tuple[int, ...]]]:
    return [(region.device, region.groups) for region in found.regions]


def only_on_cpu(net: Net, x: Value) -> Value:
    return net.begin("REVERSE_V2")("REVERSE", x, axis=1, quantization=x.quantization)


def test_a_change_of_shape_alone() -> None:
    net = Net()
    net.outputs(net.reshape(net.input(1, 16, 16, 16), 1, 32, 128))
    found = inlined(net.graph)
    assert places(found) == [(Device.CPU, (0,))]
    assert found.groups[0].reasons == (INLINED,)


def test_several_operators_that_move_numbers() -> None:
    net = Net()
    x = net.reshape(net.input(1, 16, 16, 16), 1, 32, 128)
    x = net.clamp(x, -100, 90)
    net.outputs(net.reshape(net.requantize(x, (0.06, 1)), 1, 4096))
    assert places(inlined(net.graph)) == [(Device.CPU, (0, 1, 2, 3))]


def test_a_pooling_keeps_its_region() -> None:
    net = Net()
    x = net.reshape(net.pool("MAX_POOL2D", net.input(1, 16, 16, 16), (2, 2), (2, 2)), 1, 1024)
    net.outputs(x)
    assert places(inlined(net.graph)) == [(Device.NPU, (0, 1))]


def test_one_region_of_several_stays() -> None:
    net = Net()
    x = net.conv(net.input(1, 8, 8, 16), 16)
    x = only_on_cpu(net, x)
    net.outputs(net.reshape(net.clamp(x, -50, 50), 1, 1024))
    found = inlined(net.graph)
    assert [place for place, _ in places(found)] == [Device.NPU, Device.CPU]
    assert INLINED in found.groups[found.regions[1].groups[-1]].reasons


def test_what_a_sum_is_converted_to_counts() -> None:
    net = Net()
    constant = net.constant(net.integers(16), (1, 1, 1, 16), (0.02, 0))
    net.outputs(net.multiplied(net.input(1, 8, 8, 16), constant, (0.05, 0)))
    assert places(inlined(net.graph)) == [(Device.NPU, (0,))]
    one = Net()
    constant = one.constant([1], (1, 1, 1, 1), (0.5, 0))
    one.outputs(one.multiplied(one.input(1, 8, 8, 16), constant, (0.025, 3)))
    assert places(inlined(one.graph)) == [(Device.CPU, (0,))]
