"""Networks of unsigned bytes on U85: no pool brings their bytes to signed ones and back."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Operation, Pooling
from mizzen.targets.ethos_u.machine.commands import Arch


def unsigned_network(last: str) -> bytes:
    """Two convolutions of unsigned bytes, the first with padding, and what comes after them."""
    net, draw = NetworkBuilder("unsigned"), np.random.default_rng(4)

    def convolution(name: str, value: int, scale: float, shape: tuple[int, ...]) -> int:
        channels = shape[0]
        made = net.tensor(name, (1, 9, 7, channels), "uint8", 0.3, 120)
        weights = draw.integers(1, 256, shape).astype(np.uint8)
        kernel = net.constant(f"{name}_kernel", weights, 0.01, 130)
        numbers = draw.integers(-900, 900, channels).astype(np.int32)
        bias = net.constant(f"{name}_bias", numbers, 0.01 * scale)
        options = {"padding": 0, "stride_h": 1, "stride_w": 1}
        net.operator("CONV_2D", [value, kernel, bias], [made], ("Conv2DOptions", options))
        return made

    x = net.tensor("x", (1, 9, 7, 3), "uint8", 0.1, 131)
    made = convolution("second", convolution("first", x, 0.1, (8, 3, 3, 3)), 0.3, (5, 1, 1, 8))
    if last == "LOGISTIC":
        curve = net.tensor("curve", (1, 9, 7, 5), "uint8", 1 / 256, 0)
        net.operator("LOGISTIC", [made], [curve])
        return net.finish([x], [curve])
    return net.finish([x], [made])


def lowered(data: bytes, arch: Arch) -> tuple[Operation, ...]:
    network = lower_with_state(read(data, "network.tflite"))
    edges = (*network.graph.inputs, *network.graph.outputs)
    unsigned = [value for value in edges if network.is_unsigned(value)]
    sequence = lower(network.graph, unsigned, arch).sequence
    assert sequence is not None
    return sequence.operations


@pytest.mark.parametrize(("last", "count"), [("CONV_2D", 0), ("LOGISTIC", 2)])
def test_convolutions_read_and_write_unsigned_bytes(last: str, count: int) -> None:
    """What comes of a table is brought there: its entries are signed bytes."""
    data = unsigned_network(last)
    pools = [each for each in lowered(data, Arch.U85) if isinstance(each, Pooling)]
    assert len(pools) <= count
    assert len(pools) < sum(isinstance(each, Pooling) for each in lowered(data, Arch.U55))


@pytest.mark.parametrize("accelerator", ["ethos-u85-128", "ethos-u85-1024"])
@pytest.mark.parametrize("last", ["CONV_2D", "LOGISTIC"])
def test_unsigned_bytes_are_right(last: str, accelerator: str) -> None:
    """The proof holds the code to LiteRT's kernels."""
    report = mizzen.compile(unsigned_network(last), accelerator).report
    assert report is not None
    assert not report.on_cpu
    assert (report.proof.equal, report.proof.differing) == (1, ())
    assert not [tried for choice in report.code for tried in choice.tried]
