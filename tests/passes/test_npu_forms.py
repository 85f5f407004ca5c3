"""Channels change places with the weights that read them; whatever else reads them keeps them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.passes.npu_forms import BEGIN_JOINS, JOINING
from mizzen.patterns import explain
from mizzen.reference import evaluate


class Network:
    """Two tensors of 4 x 6 pixels, the second from a transposed convolution, and their joining."""

    def __init__(self, depths: tuple[int, int] = (2, 3), batch: int = 1) -> None:
        self.b = Builder(Graph())
        self.rng = np.random.default_rng(7)
        self.zero = self.b.constant([0], DType.INT8)
        self.first = self.input(batch, 4, 6, depths[0])
        self.second = self.enlarged(self.input(batch, 2, 3, 5), depths[1])

    def input(self, *shape: int) -> Value:
        graph = self.b.graph
        return graph.add_input(TensorType(shape, DType.INT8), f"in{len(graph.inputs)}")

    def weights(self, *shape: int) -> Value:
        return self.b.constant(self.rng.integers(-128, 128, shape), DType.INT8)

    def enlarged(self, value: Value, depth: int) -> Value:
        b = self.b
        operands = (self.weights(depth, 2, 2, value.shape[3]), b.constant([5], DType.INT32))
        sums = b("TRANSPOSE_CONV2D", value, *operands, self.zero, self.zero,
                 out_pad=(0, 0, 0, 0), stride=(2, 2))  # fmt: skip
        scale = b.constant([1 << 30], DType.INT32), b.constant([38], DType.INT8)
        zeros = b.constant([0], DType.INT32), self.zero
        single = RoundingMode.SINGLE_ROUND
        return b("RESCALE", sums, *scale, *zeros, scale32=True, rounding_mode=single,
                 per_channel=False)  # fmt: skip

    def joined(self, *parts: Value) -> Value:
        return self.b("CONCAT", *(parts or (self.first, self.second)), axis=3)

    def convolution(self, value: Value) -> Value:
        weights = self.weights(2, 3, 3, value.shape[3])
        operands = (weights, self.b.constant([-9], DType.INT32), self.zero, self.zero)
        return self.b("CONV2D", value, *operands, pad=(1, 1, 1, 1), stride=(1, 1))

    def results(self) -> list[list[object]]:
        rng = np.random.default_rng(1)
        graph = self.b.graph
        images = [rng.integers(-128, 128, v.shape).astype(np.int8) for v in graph.inputs]
        return [array.tolist() for array in evaluate(graph, images)]


@given(depths=st.tuples(st.integers(1, 9), st.integers(1, 9)), more=st.integers(0, 4))
def test_every_bit_stays(depths: tuple[int, int], more: int) -> None:
    net = Network(depths)
    others = [net.input(1, 4, 6, more)] if more else []
    value = net.joined(net.first, net.second, *others)
    net.b.graph.set_outputs([net.convolution(value), net.convolution(value)])
    before = net.results()
    assert BEGIN_JOINS.run(net.b.graph)
    (join,) = [operation for operation in net.b.graph if operation.kind == "CONCAT"]
    assert list(join.operands) == [net.second, net.first, *others]
    assert net.results() == before
    assert not BEGIN_JOINS.run(net.b.graph)


def an_output(net: Network) -> None:
    value = net.joined()
    net.b.graph.set_outputs([net.convolution(value), value])


def another_user(net: Network) -> None:
    value = net.joined()
    net.b.graph.set_outputs([net.convolution(value), net.b("CLAMP", value, min_val=0, max_val=9)])


def both_in_pieces(net: Network) -> None:
    other = net.enlarged(net.input(1, 2, 3, 5), 4)
    net.b.graph.set_outputs([net.convolution(net.joined(other, net.second))])


def taken_twice(net: Network) -> None:
    more = net.b("CLAMP", net.second, min_val=0, max_val=9)
    net.b.graph.set_outputs([net.convolution(net.joined()), more])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (an_output, "CONCAT: the joined tensor must be one image and no output"),
        (another_user, "CLAMP: every user must be CONV2D with constant weights"),
        (both_in_pieces, "RESCALE: the first part must not be in pieces too"),
        (taken_twice, "RESCALE: the result must have one user, and has 2"),
    ],
)
def test_what_would_change_or_gain_nothing_stays(make: object, reason: str) -> None:
    net = Network()
    assert callable(make)
    make(net)
    (join,) = [operation for operation in net.b.graph if operation.kind == "CONCAT"]
    assert str(explain(net.b.graph, JOINING, join)) == f"channels joined behind others: {reason}"
    assert not BEGIN_JOINS.run(net.b.graph)
