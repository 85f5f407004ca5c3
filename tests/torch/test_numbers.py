"""Streams name a PyTorch program's operators by the numbers that its report lists."""

from __future__ import annotations

import torch
from torch import nn

import mizzen.torch
from mizzen.analysis.cost import cost_report
from mizzen.analysis.layers import layers
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import Device


class Attention(nn.Module):
    """A convolution, a product of matrices that is composed of many operations, a sort."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3, padding=1)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.conv(x).flatten(2).transpose(1, 2)
        weights = torch.softmax(rows @ rows.transpose(1, 2), -1)
        return torch.cumprod(self.linear(weights @ rows), dim=1)


def test_every_operation_is_of_the_operator_that_it_names() -> None:
    torch.manual_seed(1)
    inputs = [(torch.randn(1, 2, 4, 6),) for _ in range(4)]
    artifact = mizzen.torch.compile(
        Attention().eval(), inputs[0], "ethos-u55-128", calibration=inputs
    )
    report = artifact.report
    assert report is not None
    kinds = {row.index: row.kind for row in report.placements}
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    named = [origin for step in steps for origin in step.program.origins.values()]
    assert named
    assert {origin.operator for origin in named if origin.operator is not None} <= set(kinds)
    assert {kinds[row.operator] for row in named if row.operator is not None} >= {
        "aten.conv2d",
        "aten.bmm",
        "aten.linear",
    }
    for origin in named:
        assert origin.operator is None or kinds[origin.operator] == origin.kind
    assert list(report.origins) == [step.program.origins for step in steps]


def test_layers_of_a_program_take_all_of_its_time() -> None:
    torch.manual_seed(1)
    inputs = [(torch.randn(1, 2, 4, 6),) for _ in range(4)]
    artifact = mizzen.torch.compile(
        Attention().eval(), inputs[0], "ethos-u55-128", calibration=inputs
    )
    assert artifact.report is not None
    cost = cost_report(artifact)
    rows = layers(artifact.report, cost)
    assert sum(row.cycles for row in rows) == cost.cycles
    by_kind = {row.kind: row for row in rows}
    assert len(by_kind["aten.bmm"].operations) > 1
    (product,) = [row for row in rows if row.kind == "aten.cumprod"]
    assert product.device is Device.CPU
    assert product.cycles > 0
    (own,) = cost.of_operator(product.index or 0)
    assert (own.name, own.device) == ("aten.cumprod", Device.CPU)
    assert by_kind["conversions"].device is Device.CPU
    moved = by_kind["transfers"].operations if "transfers" in by_kind else ()  # ours have origins
    assert {row.name for row in cost.operations if row.index in moved} <= {"OP_DMA_START"}
