"""A PAD of which a convolution with a stride does not see all is done with it on U85."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Convolution
from mizzen.targets.ethos_u.machine.commands import Arch


def padded_network(amounts: tuple[int, int, int, int], height: int) -> bytes:
    """PAD of rows and columns, then a convolution of 3x3 with a stride of 2 and no padding."""
    net, draw = NetworkBuilder("padded"), np.random.default_rng(5)
    top, bottom, left, right = amounts
    x = net.tensor("x", (1, height, 10, 4), "int8", 0.1, 7)
    rows = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    tall, wide = height + top + bottom, 10 + left + right
    padded = net.tensor("padded", (1, tall, wide, 4), "int8", 0.1, 7)
    net.operator("PAD", [x, net.constant("amounts", rows)], [padded], ("PadOptions", {}))
    weights = draw.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8)
    kernel = net.constant("kernel", weights, 0.01)
    bias = net.constant("bias", draw.integers(-900, 900, 8).astype(np.int32), 0.001)
    shape = (1, (tall - 3) // 2 + 1, (wide - 3) // 2 + 1, 8)
    made = net.tensor("made", shape, "int8", 0.2, -3)
    options = {"padding": 1, "stride_h": 2, "stride_w": 2}
    net.operator("CONV_2D", [padded, kernel, bias], [made], ("Conv2DOptions", options))
    return net.finish([x], [made])


@pytest.mark.parametrize("height", [8, 9])
@pytest.mark.parametrize("amounts", [(1, 1, 1, 1), (0, 1, 0, 1), (1, 1, 2, 1), (1, 2, 1, 2)])
def test_padding_is_the_convolutions(amounts: tuple[int, int, int, int], height: int) -> None:
    data = padded_network(amounts, height)
    network = lower_with_state(read(data, "network.tflite"))
    sequence = lower(network.graph, (), Arch.U85).sequence
    assert sequence is not None
    assert [type(each) for each in sequence.operations] == [Convolution]
    report = mizzen.compile(data, "ethos-u85-256").report
    assert report is not None
    assert not report.on_cpu
    assert (report.proof.equal, report.proof.differing) == (1, ())
    assert not [tried for choice in report.code for tried in choice.tried]
