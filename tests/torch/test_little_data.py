"""Calibration data that is not enough is said, with the tensor."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.diagnostics import Diagnostic
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.quantize.enough import saturation
from mizzen.torch import compile

EXAMPLE = (torch.zeros(1, 8),)
OURS = ("W320", "W321", "W322")


class Dead(nn.Module):
    """A branch that calibration never reaches: its ReLU is always 0."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(8, 6)

    def forward(self, x: Any) -> Any:
        return self.first(x) + torch.relu(self.second(x) - 100)


def found_in(model: nn.Module, calibration: list[Any]) -> list[Diagnostic]:
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        artifact = compile(
            model.eval(), EXAMPLE, "ethos-u85-256", calibration=calibration, prove="off"
        )
    assert artifact.report is not None
    return [row for row in artifact.report.diagnostics if row.code in OURS]


def test_enough_data_says_nothing() -> None:
    assert not found_in(nn.Linear(8, 4), [torch.randn(1, 8) for _ in range(4)])


def test_one_sample_is_said_of_the_input() -> None:
    (found,) = found_in(nn.Linear(8, 4), [torch.randn(1, 8)])
    assert found.code == "W320"
    assert found.message == (
        "calibration must see several inputs, and saw one: the ranges are those of this one"
    )
    assert found.help == "calibrate with some dozens of real inputs"
    assert found.origin is not None
    assert found.origin.name


def test_one_number_is_said_of_the_input_alone() -> None:
    (found,) = found_in(Dead(), [torch.full((1, 8), 0.5) for _ in range(4)])
    assert found.code == "W321"
    assert found.message == (
        "calibration must see different numbers, and every one that came was 0.5"
    )


def test_a_branch_that_is_never_reached_is_named() -> None:
    (found,) = found_in(Dead(), [torch.randn(1, 8) for _ in range(4)])
    assert (found.code, found.origin is not None) == ("W321", True)
    assert found.origin is not None
    assert found.origin.kind == "relu"
    assert found.message.endswith("every one that came was 0")


def prepared(model: nn.Module, example: tuple[torch.Tensor, ...] = EXAMPLE) -> Any:
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    return prepare_pt2e(torch.export.export(model.eval(), example).module(), quantizer)


def test_conversion_step_by_step_warns_once() -> None:
    module = prepared(nn.Linear(8, 4))
    module(torch.randn(1, 8))
    with pytest.warns(UserWarning, match="W320") as caught:
        convert_pt2e(module)
    assert len([row for row in caught if "W320" in str(row.message)]) == 1


def test_a_batch_is_several_samples() -> None:
    module = prepared(nn.Linear(8, 4))
    observer = next(row for row in module.modules() if hasattr(row, "calls"))
    observer.calls.add(torch.randn(16, 8))
    assert not list(observer.calls.findings(None, is_computed=False))


class _Masked(nn.Module):
    """Attention whose mask hides most of the scores."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        visible = torch.arange(16)[None, :] <= 3
        return nn.functional.scaled_dot_product_attention(x, x, x, visible.expand(16, 16))


def test_what_a_mask_hides_is_not_cut_off() -> None:
    calls = [(torch.randn(1, 1, 16, 8),) for _ in range(4)]
    module = prepared(_Masked(), calls[0])
    for call in calls:
        module(*call)
    assert not list(saturation(convert_pt2e(module), calls))


def test_what_is_cut_off_is_counted() -> None:
    module = prepared(nn.Linear(8, 4))
    calls = [(torch.randn(1, 8),) for _ in range(4)]
    for call in calls:
        module(*call)
    converted = convert_pt2e(module)
    assert not list(saturation(converted, calls))
    wide = [(10 * call[0],) for call in calls]
    assert {row.code for row in saturation(converted, wide)} == {"W322"}
    first = next(iter(saturation(converted, wide)))
    assert first.message.startswith(
        "at most 0.1% of the numbers of calibration may lie beyond the range that was found, "
    )
