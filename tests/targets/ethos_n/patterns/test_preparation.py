"""Graphs with channels first: turned to channels last, what turns them at the edges apart."""

from __future__ import annotations

import numpy as np

from mizzen.graph import DType, Graph, Operation, Quantization, TensorType
from mizzen.ops import Builder
from mizzen.reference import evaluate
from mizzen.targets.ethos_n.patterns import prepare

from .graphs import Net, names

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
Q = Quantization((0.05,), (3,))


def transposed(graph: Graph) -> list[Operation]:
    return [row for row in graph.sorted() if row.kind == "TRANSPOSE"]


def channels_first() -> Net:
    """Two layers, each a group with the TRANSPOSEs around it."""
    net = Net()
    value = net.graph.add_input(TensorType((1, 16, 8, 8), DType.INT8, Q))
    for group in range(2):
        b = Builder(net.graph, None, group)
        value = b("TRANSPOSE", value, perms=LAST, quantization=Q)
        value = b("MAX_POOL2D", value, kernel=(2, 2), stride=(2, 2), pad=(0,) * 4, quantization=Q)
        value = b("TRANSPOSE", value, perms=FIRST, quantization=Q)
    return net.outputs(value)


def test_transposes_at_the_edges_are_groups_of_their_own() -> None:
    net = channels_first()
    inputs = [net.integers(1, 16, 8, 8)]
    before = evaluate(net.graph, inputs)
    apart = prepare(net.graph)
    np.testing.assert_array_equal(evaluate(net.graph, inputs), before)
    first, last = transposed(net.graph)
    assert apart == {first.group: 0, last.group: 1}
    assert sorted({row.group or 0 for row in net.graph}) == [0, 1, 2, 3]
    assert names(net.graph) == ["nn.max_pool2d", "nn.max_pool2d"]


def test_a_transpose_inside_a_group_stays_in_it() -> None:
    """Apart, it would wait for its group and its group for it."""
    net = Net()
    b = Builder(net.graph, None, 0)
    x = net.input(1, 8, 8, 16)
    value = b("MAX_POOL2D", x, kernel=(2, 2), stride=(2, 2), pad=(0,) * 4, quantization=Q)
    value = b("TRANSPOSE", value, perms=(0, 2, 1, 3), quantization=Q)
    value = b("MAX_POOL2D", value, kernel=(2, 2), stride=(2, 2), pad=(0,) * 4, quantization=Q)
    net.outputs(value)
    assert prepare(net.graph) == {}
    assert {row.group for row in net.graph} == {0}


def test_a_transpose_inside_moves_to_an_edge_where_what_computes_does_not_mind() -> None:
    """Whoever gives the input, or takes the output, moves it for nothing."""
    net = Net()
    b = Builder(net.graph, None, 0)
    x = net.input(1, 8, 8, 16)
    value = b("CLAMP", x, min_val=-90, max_val=90, quantization=Q)
    value = b("TRANSPOSE", value, perms=(0, 2, 1, 3), quantization=Q)
    value = b("MAX_POOL2D", value, kernel=(2, 2), stride=(2, 2), pad=(0,) * 4, quantization=Q)
    net.outputs(value)
    inputs = [net.integers(1, 8, 8, 16)]
    before = evaluate(net.graph, inputs)
    prepare(net.graph)
    np.testing.assert_array_equal(evaluate(net.graph, inputs), before)
    kinds = [row.kind for row in net.graph.sorted()]
    assert kinds.index("TRANSPOSE") < kinds.index("CLAMP") < kinds.index("MAX_POOL2D")


def test_reshapes_at_the_edges_of_groups_are_groups_of_their_own() -> None:
    """Rows are no batch: what makes a plane of them does not keep the layer from the NPU."""
    net = Net()
    value = net.graph.add_input(TensorType((8, 16), DType.INT8, Q))
    b = Builder(net.graph, None, 0)
    value = b("RESHAPE", value, b.constant((1, 8, 1, 16), DType.SHAPE), quantization=Q)
    value = b("MAX_POOL2D", value, kernel=(2, 1), stride=(2, 1), pad=(0,) * 4, quantization=Q)
    net.outputs(b("RESHAPE", value, b.constant((4, 16), DType.SHAPE), quantization=Q))
    assert list(prepare(net.graph).values()) == [0, 0]
    kinds = {row.kind for row in net.graph if row.group == 0} - {"CONST", "CONST_SHAPE"}
    assert kinds == {"MAX_POOL2D"}


def test_channels_last_stay_as_they_are() -> None:
    net = Net()
    net.outputs(net.clamp(net.conv(net.input(1, 8, 8, 16), 8), -50, 50))
    before = [(row.kind, row.group) for row in net.graph]
    assert prepare(net.graph) == {}
    assert [(row.kind, row.group) for row in net.graph] == before
