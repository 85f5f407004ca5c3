"""Code from TOSA: what is known by index of operation, and the order of inputs and outputs."""

from __future__ import annotations

import numpy as np

from mizzen.artifact.steps import read_network as read
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

U55 = resolve("ethos-u55-128")
U85 = resolve("ethos-u85-256")
MAP = TensorType((1, 8, 8, 4), DType.INT8)


class Net:
    """A graph that is being built."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.b = Builder(self.graph)

    def input(self, type: TensorType = MAP, name: str = "") -> Value:
        return self.graph.add_input(type, name)

    def convolution(self, value: Value) -> Value:
        """[N,H,W,C] -> [N,H,W,4], of the same type."""
        b, source = self.b, value.dtype
        weights = b.constant(np.arange(36 * value.shape[3]).reshape(4, 3, 3, -1) % 7, DType.INT8)
        bias = b.constant([0] * 4, DType.INT48 if source is DType.INT16 else DType.INT32)
        zeros = b.constant([0], source), b.constant([0], DType.INT8)
        sums = b("CONV2D", value, weights, bias, *zeros, pad=(1, 1, 1, 1), stride=(1, 1))
        return self.rescale(sums, source)

    def rescale(self, value: Value, dtype: DType, shift: int = 37) -> Value:
        b, wide = self.b, value.dtype is not DType.INT48
        operands = (
            b.constant([1 << 30 if wide else 1 << 14], DType.INT32 if wide else DType.INT16),
            b.constant([shift if wide else 21], DType.INT8),
            b.constant([0], value.dtype),
            b.constant([0], dtype),
        )
        single = RoundingMode.SINGLE_ROUND
        return b("RESCALE", value, *operands, scale32=wide, rounding_mode=single, per_channel=False)

    def give(self, *values: Value) -> Graph:
        self.graph.set_outputs(values)
        return self.graph


def compiled(graph: Graph) -> Compiled:
    answer = generate(write(graph), U55, NetworkForm.TOSA)
    assert isinstance(answer, Compiled), answer
    return answer


def test_work_and_commands_are_known_by_index() -> None:
    net = Net()
    graph = net.give(net.b("MAX_POOL2D", net.convolution(net.input()), kernel=(2, 2),
                           stride=(2, 2), pad=(0, 0, 0, 0)))  # fmt: skip
    answer, kinds = compiled(graph), [operation.kind for operation in graph.sorted()]
    assert [kinds[row.operator or 0] for row in answer.work] == ["CONV2D", "MAX_POOL2D"]
    assert [kinds[row.operator or 0] for row in answer.commands] == ["CONV2D", "MAX_POOL2D"]
    # 8 x 8 results of 4 channels, each of 9 x 4 products
    assert answer.work[0].macs == 8 * 8 * 4 * 9 * 4


def test_inputs_and_outputs_keep_order_and_names() -> None:
    net = Net()
    first, unused, last = (net.input(name=name) for name in ("z", "unused", "a"))
    one, other = net.convolution(first), net.b("CLAMP", last, min_val=0, max_val=5)
    one.name, other.name = "one", "other"
    network = read(compiled(net.give(other, one, other)).network, "x").main
    assert unused in net.graph.inputs
    assert [network.tensors[index].name for index in network.inputs] == ["z", "unused", "a"]
    assert [network.tensors[index].name for index in network.outputs] == ["other", "one", "other"]
