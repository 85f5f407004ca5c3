"""What the comparison with ExecuTorch computes itself: MACs, and figures from outcomes."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the zoo needs PyTorch")
ROOT = Path(__file__).resolve().parents[2]

# Torchvision's documentation gives 0.3, 0.06 and 1.81 G; these are the tables' sums worked out:
# convolutions and linear layers only.
PUBLISHED = {
    "mobilenet_v2": 300_774_272,
    "mobilenet_v3_small": 56_510_400,
    "resnet18": 1_814_073_344,
}
GATES = 4 * 64 * (40 + 64)
ATTENTION = 2 * 32 * 32 * 128  # scores and weighted values, 32 tokens of 128
LAYER = 32 * (3 + 1 + 4 + 4) * 128 * 128 + ATTENTION  # projections in and out, perceptron
WORKED_OUT = {
    "digits": 64 * 16 * 9 + 64 * 32 * 16 * 9 + 16 * 64 * 32 * 9 + 64 * 10,
    "lstm": 16 * GATES + 64 * 12,
    "encoder": 2 * LAYER + 128 * 10,
}


@pytest.fixture(scope="module")
def modules() -> Any:
    folders = [str(ROOT / "examples"), str(ROOT / "benchmarks")]
    sys.path[:0] = folders
    try:
        names = ("zoo", "against_executorch_macs", "against_executorch")
        return tuple(import_module(name) for name in names)
    finally:
        for folder in folders:
            sys.path.remove(folder)


@pytest.mark.filterwarnings("ignore:The tensor attributes .* were assigned during export")
@pytest.mark.parametrize(("name", "count"), (PUBLISHED | WORKED_OUT).items())
def test_macs_are_those_of_the_architecture(modules: Any, name: str, count: int) -> None:
    zoo, counting, _ = modules
    entry = zoo.NETWORKS[name]
    program = torch.export.export(entry.network().eval(), entry.example_inputs())
    assert counting.macs(program.graph.nodes) == count


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")
def test_macs_of_a_transposed_convolution_are_those_of_its_input(modules: Any) -> None:
    _, counting, _ = modules
    layer = torch.nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2)
    program = torch.export.export(layer.eval(), (torch.zeros(1, 4, 5, 7),))
    assert counting.macs(program.graph.nodes) == 4 * 5 * 7 * (6 // 2) * 9
    edge = program.run_decompositions()  # here it is aten.convolution, transposed
    assert counting.macs(edge.graph.nodes) == 4 * 5 * 7 * (6 // 2) * 9


def test_figures_are_ours_over_theirs_and_count_failures(modules: Any) -> None:
    _, _, against = modules
    ours = against.Outcome(lowering_seconds=1.0, process_seconds=6.0, cycles=90, sram_bytes=8)
    theirs = against.Outcome(
        lowering_seconds=4.0, process_seconds=12.0, cycles=100, sram_bytes=16, npu_macs=0.25
    )
    slow = against.Outcome(lowering_seconds=4.0, process_seconds=12.0, cycles=120, sram_bytes=16)
    failed = against.Outcome(error="refused")
    pairs = ((ours, theirs), (slow, theirs), (failed, theirs), (ours, failed))
    rows = [against.Row("net", "npu", *pair) for pair in pairs]
    figures = against.figures_of(rows)
    assert figures["lowering_ratio"] == pytest.approx((0.25 * 1.0) ** 0.5)
    assert figures["process_ratio"] == pytest.approx((0.5 * 1.0) ** 0.5)
    assert figures["cycles_ratio"] == pytest.approx((0.9 * 1.2) ** 0.5)
    assert figures["cycles_ratio_worst"] == pytest.approx(1.2)
    assert figures["sram_ratio"] == pytest.approx((0.5 * 1.0) ** 0.5)
    assert figures["npu_macs_minus_peer_min"] == -0.25
    assert figures["failed"] == 2
