"""What is said of programs that the floating-point profile does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import to_tosa

IMAGE = (torch.zeros(1, 3, 8, 8),)
HERE = Path(__file__).name


class _Sorted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sort(torch.relu(x), dim=-1).values


class _Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2.0


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(3, 4, 3), _Sorted())

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def refusal(module: nn.Module, inputs: tuple[Tensor, ...], profile: str = "FP") -> Diagnostic:
    with pytest.raises(MizzenError) as caught:
        to_tosa(export(module.eval(), Call(inputs), "net"), "net", profile)
    return caught.value.diagnostic


def test_operator_without_form_is_named_with_module_and_line() -> None:
    found = refusal(_Network(), IMAGE)
    assert found.code == "E850"
    assert found.message == (
        "every operator must have a form in TOSA's floating-point profile, and aten.sort has none"
    )
    assert found.origin is not None
    assert found.origin.module == "inner.1 (_Sorted)"
    assert (found.origin.source or "").startswith(f"{HERE}:")
    assert found.help is not None


def test_element_type_that_tosa_lacks() -> None:
    found = refusal(_Double(), (torch.zeros(2, 3, dtype=torch.float64),))
    assert found.code == "E851"
    assert "torch.float64, which TOSA 1.0 does not compute with" in found.message
    assert found.help == "convert the model: `model.float()`, or `.to(torch.int32)` for integers"


def test_training_mode_is_refused() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    with pytest.raises(MizzenError) as caught:
        to_tosa(export(module.train(), Call((torch.zeros(1, 4),)), "net"), "net", "FP")
    assert caught.value.diagnostic.code == "E851"
    assert caught.value.diagnostic.help == "call `model.eval()` before export"


def test_quantised_program_is_for_the_other_profile() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(export(module, Call(IMAGE), "net").module(), quantizer)
    prepared(*IMAGE)
    with pytest.raises(MizzenError) as caught:
        to_tosa(export(convert_pt2e(prepared), Call(IMAGE), "net"), "net", "FP")
    assert caught.value.diagnostic.code == "E852"
    assert caught.value.diagnostic.help is not None
    assert caught.value.diagnostic.help.startswith("use profile INT")


def test_unquantised_program_is_for_the_other_profile() -> None:
    found = refusal(nn.Sequential(nn.Conv2d(3, 4, 3)), IMAGE, "INT")
    assert found.code == "E853"
    assert found.help is not None
    assert found.help.startswith("use profile FP")
