"""Programs that were exported or converted in training mode are refused, wherever they come in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import EthosUCompileSpec, EthosUPartitioner, compile, compile_converted
from mizzen.torch import compile_for as compile_partitioned
from mizzen.torch.backend import mizzen as backend

U85 = "ethos-u85-256"
IMAGE = torch.zeros(1, 3, 8, 8)

CONVERTED = (
    "  help call prepared.eval() (torchao's move_exported_model_to_eval) before convert_pt2e; give "
    "functional.dropout training=self.training"
)


def refused(action: Callable[[], Any]) -> str:
    with pytest.raises(MizzenError) as caught:
        action()
    return str(caught.value)


def trained(layer: nn.Module, inference: bool) -> torch.export.ExportedProgram:
    """Convert a model with a layer after training with quantisation."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), layer, nn.Conv2d(4, 4, 1)).train()
    quantizer = EthosUQuantizer(U85)
    quantizer.set_global(get_symmetric_quantization_config(is_qat=True))
    images = torch.randn(2, 3, 8, 8)
    prepared = prepare_qat_pt2e(torch.export.export(model, (images,)).module(), quantizer)
    allow_exported_model_train_eval(prepared)
    prepared(images).square().mean().backward()
    if inference:
        prepared.eval()
    return torch.export.export(convert_pt2e(prepared), (images,))


def _compile_file(exported: torch.export.ExportedProgram, folder: Path) -> Any:
    torch.export.save(exported, folder / "net.pt2")
    return mizzen.compile(folder / "net.pt2", U85, prove="off")


WAYS: dict[str, Callable[[torch.export.ExportedProgram, Path], Any]] = {
    "compile_converted": lambda exported, _: compile_converted(exported, U85, prove="off"),
    "compile_for": lambda exported, _: compile_partitioned(
        exported, EthosUPartitioner(EthosUCompileSpec(U85))
    ),
    "a file": _compile_file,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_converted_in_training_mode_is_refused(way: str, tmp_path: Path) -> None:
    text = refused(lambda: WAYS[way](trained(nn.Dropout(0.5), inference=False), tmp_path))
    first, *_, last = text.splitlines()
    assert first == ("error[E877]: the model must be in inference mode, and it is in training mode")
    assert "aten.dropout" in text
    assert last == CONVERTED


@pytest.mark.parametrize("layer", [nn.Dropout2d(0.5), nn.AlphaDropout(0.2)])
def test_every_layer_that_drops_is_refused(layer: nn.Module) -> None:
    exported = trained(layer, inference=False)
    assert CONVERTED in refused(lambda: compile_converted(exported, U85))


@pytest.mark.parametrize("layer", [nn.BatchNorm2d(3), nn.Dropout(0.5)])
def test_a_program_exported_in_training_mode_is_refused(layer: nn.Module) -> None:
    images = torch.randn(2, 3, 8, 8)
    program = torch.export.export(layer.train(), (images,))
    assert "E877" in refused(lambda: compile(program, (images,), U85))


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm2d(4)])
def test_in_inference_mode_it_is_compiled(layer: nn.Module) -> None:
    artifact = compile_converted(trained(layer, inference=True), U85, prove="off")
    assert artifact.report is not None
    assert not artifact.report.on_cpu


class Drops(nn.Module):
    """Says nothing of its mode to dropout, so that it drops in inference too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(torch.relu(x), 0.5)


class Attends(nn.Module):
    """Drops weights of its attention in inference too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


@pytest.mark.parametrize("model", [Drops(), Attends()])
def test_a_function_that_always_drops_is_refused(model: nn.Module) -> None:
    program = torch.export.export(model.eval(), (IMAGE,))
    for given in (model.eval(), program):
        text = refused(lambda given=given: compile(given, (IMAGE,), U85))
        assert "E877" in text
        assert text.endswith(
            "help call model.eval() before torch.export.export; give functional.dropout "
            "training=self.training"
        )


def test_the_first_call_of_a_compiled_model_refuses_it_too() -> None:
    torch.compiler.reset()
    fast = torch.compile(Drops().eval(), backend=backend, options={"accelerator": U85})
    assert "E877" in refused(lambda: fast(IMAGE))


def test_a_norm_without_statistics_of_its_own_trains_nothing() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), nn.Dropout(0.0)).eval()
    assert compile(model, (torch.randn(2, 3, 8, 8),), U85, prove="off").report is not None
