"""Checking TOSA files: every operator is placed, whatever the NPU refuses, and by which rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.report import Device

U55, U85 = "ethos-u55-128", "ethos-u85-256"
MAP = TensorType((1, 16, 16, 8), DType.INT8)

Make = Callable[[Builder, Value], Value]


def network(*layers: Make) -> bytes:
    """Write layers, one after another."""
    graph = Graph()
    builder = Builder(graph)
    value = graph.add_input(MAP, "image")
    for layer in layers:
        value = layer(builder, value)
    graph.set_outputs([value])
    return write(graph)


def pooled(b: Builder, value: Value) -> Value:
    return b("MAX_POOL2D", value, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))


def mixed(b: Builder, value: Value) -> Value:
    return b("BITWISE_XOR", value, value)


def test_what_a_rule_refuses_is_placed_with_it_and_the_rest_is_compiled() -> None:
    found = mizzen.check(network(pooled, mixed, pooled), U55)
    assert [(row.kind, row.device) for row in found.placements] == [
        ("MAX_POOL2D", Device.NPU),
        ("BITWISE_XOR", Device.CPU),
        ("MAX_POOL2D", Device.NPU),
    ]
    (reason,) = found.placements[1].reasons
    assert reason.rule == "no-form"
    assert reason.message == "Ethos-U55 has no form of BITWISE_XOR, but Ethos-U85 has"
    assert all(row.cycles > 0 for row in found.placements if row.device is Device.NPU)
    assert sum(row.cycles for row in found.placements) == found.compilation.npu_cycles
    assert [failure.code for failure in found.failures] == ["E401"]
    assert mizzen.check(network(pooled, mixed), U55, max_cpu_ops=1).holds


def test_where_nothing_is_refused_the_report_is_that_of_compiling() -> None:
    data = network(pooled, mixed)
    found = mizzen.check(data, U85)
    compiled = mizzen.compile(data, U85).report
    assert compiled is not None
    assert found.holds
    assert found.placements == compiled.placements
    assert found.compilation.cycles == compiled.cycles
    assert found.compilation.areas == compiled.areas


def test_a_network_of_which_the_npu_takes_nothing() -> None:
    found = mizzen.check(network(mixed), U55)
    assert [row.device for row in found.placements] == [Device.CPU]
    assert found.compilation.cycles == found.compilation.arena_bytes == 0


def test_what_only_the_compiler_refuses_has_its_words() -> None:
    graph = Graph()
    b = Builder(graph)
    sums = graph.add_input(TensorType(MAP.shape, DType.INT48), "sums")
    scale = b.constant([1 << 14], DType.INT16), b.constant([21], DType.INT8)
    zeros = b.constant([0], DType.INT48), b.constant([0], DType.INT8)
    mode = RoundingMode.SINGLE_ROUND
    small = b("RESCALE", sums, *scale, *zeros, scale32=False, rounding_mode=mode, per_channel=False)
    graph.set_outputs([pooled(b, small)])
    first, second = mizzen.check(write(graph), U55).placements
    assert (first.kind, first.device, second.device) == ("RESCALE", Device.CPU, Device.NPU)
    (reason,) = first.reasons
    assert reason.rule == "compiler"
    assert reason.message.startswith("the compiler does not take RESCALE for ethos-u55-128: ")


def test_what_the_compiler_would_get_wrong_is_not_on_the_npu() -> None:
    """The same weights with other biases, where nothing can tell them apart."""
    graph = Graph()
    b = Builder(graph)
    image = graph.add_input(TensorType((1, 4, 4, 16), DType.INT8), "image")
    zero = b.constant([0], DType.INT8)
    full = b.constant(np.linspace(-128, 127, 256).reshape(16, 1, 1, 16), DType.INT8)
    for bias in (-2000, 3000):
        values = b.constant([bias] * 16, DType.INT32)
        pads, single = (0, 0, 0, 0), (1, 1)
        sums = b("CONV2D", image, full, values, zero, zero, pad=pads, stride=single)
        graph.set_outputs([*graph.outputs, sums])
    found = mizzen.check(write(graph), U55)
    rules = [[reason.rule for reason in row.reasons] for row in found.placements]
    assert ["compiler-defect"] in rules
    assert [] in rules


def test_no_operator_can_be_asked_to_stay_on_the_cpu() -> None:
    with pytest.raises(MizzenError, match="E223"):
        mizzen.check(network(pooled), U55, ignore_ops=["ADD"])


def test_the_command_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.tosa"
    path.write_bytes(network(pooled, mixed))
    status = main(["check", str(path), "--accelerator-config", U55])
    out, err = capfd.readouterr()
    assert status == 1
    assert "on the NPU   1 of 2 operators" in out
    assert "why   Ethos-U55 has no form of BITWISE_XOR, but Ethos-U85 has" in out
    assert "error[E401]: at most 0 of 2 operators may be on the CPU, but 1 is" in err
    assert main(["check", str(path), "--accelerator-config", U85]) == 0
