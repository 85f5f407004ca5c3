"""One operator in the middle that is not quantised: the NPU before it, and the NPU after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.artifact.host_steps import TorchStep
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import compile_converted

Build = Callable[..., Any]

U55 = "ethos-u55-128"


class _Block(nn.Sequential):
    """A convolution with batch norm and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
        )


class _Scale(nn.Module):
    """A gain for each channel that its mean decides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x.mean((2, 3), keepdim=True))


class _Island(nn.Module):
    """A small classifier; `island` is to stay in floating point."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Sequential(_Block(3, 16), _Block(16, 16), nn.MaxPool2d(2))
        self.island = _Scale()
        self.after = nn.Sequential(_Block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.after(self.island(self.before(x))))


def _exported(calls: list[tuple[torch.Tensor]]) -> tuple[Any, list[Any]]:
    torch.manual_seed(0)
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    quantizer.set_module_name("island", None)
    program = torch.export.export(_Island().eval(), calls[0]).module()
    prepared = prepare_pt2e(program, quantizer)
    with torch.no_grad():
        for (image,) in calls:
            prepared(image)
    return torch.export.export(convert_pt2e(prepared), calls[0]), quantizer.report()


def test_what_is_around_an_unquantised_operator_is_on_the_npu() -> None:
    """Two regions, PyTorch between them, and what PyTorch gives but for a tie in the last layer."""
    torch.manual_seed(1)
    calls = [(torch.randn(1, 3, 32, 32),) for _ in range(4)]
    exported, stays = _exported(calls)
    artifact = compile_converted(exported, U55, prove="off")
    kinds = ["npu" if step.on_npu else type(step).__name__ for step in artifact.steps]
    assert kinds == [
        *("QuantizeStep", "npu"),
        "TorchStep",
        *("QuantizeStep", "npu", "DequantizeStep"),
    ]
    scale = artifact.steps[-1].scale  # pyright: ignore[reportAttributeAccessIssue] the list above says what it is
    for (image,) in calls:
        wanted = exported.module()(image)
        found = torch.from_numpy(artifact.run(image.numpy()))
        assert ((found - wanted) / scale).round().abs().max() <= 1
    assert {row.operator for row in stays} == {"mean", "sigmoid", "mul"}


def test_the_report_says_why_an_operator_is_not_on_the_npu() -> None:
    """By the user's module, with what would change it."""
    exported, stays = _exported([(torch.randn(1, 3, 32, 32),)])
    artifact = compile_converted(exported, U55, prove="off")
    assert artifact.report is not None
    rows = artifact.report.on_cpu
    assert [row.kind for row in rows] == ["aten.mean", "aten.sigmoid", "aten.mul"]
    assert all("island" in row.name for row in rows)
    assert [(row.reasons[0].message, row.reasons[0].help) for row in rows] == [
        (
            "its output is not quantised, so the next operator takes floating-point numbers",
            "quantise the operators around it: set_global(), or set_module_name() for its module",
        ),
        ("its input is not quantised", "quantise the model's part before it"),
        ("its other is not quantised", "quantise the model's part before it"),
    ]
    (island,) = [step for step in artifact.steps if isinstance(step, TorchStep)]
    assert island.kinds == ("aten.mean", "aten.sigmoid", "aten.mul")
    assert [row.reason for row in stays] == [
        'set_module_name("island", None) keeps it in floating point'
    ] * 3
