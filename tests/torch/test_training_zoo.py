"""Training with simulated quantisation, of every network of the zoo."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import compile_converted

U55 = "ethos-u55-128"

NETWORKS = [
    "digits",
    "ds_cnn",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "resnet18",
    "efficientnet_lite0",
    "unet",
    "yolo",
    "convnext",
    "encoder",
    "vit_tiny",
    "lstm",
    "gru",
    "tcn",
]


def _trained(model: nn.Module, inputs: tuple[Any, ...]) -> Any:
    """Prepare a model for training, go back through it once, and convert it."""
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = 0.1  # an average over all calls cannot be exported for training
    quantizer = EthosUQuantizer(U55)
    quantizer.set_global(get_symmetric_quantization_config(is_qat=True))
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The tensor attributes .* were assigned")
        exported = torch.export.export(model.train(), inputs)
        prepared = prepare_qat_pt2e(exported.module(), quantizer)
        allow_exported_model_train_eval(prepared)
        found = prepared(*inputs)
        for row in found if isinstance(found, (tuple, list)) else [found]:
            row.square().mean().backward(retain_graph=True)
    for name, parameter in prepared.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    prepared.eval()
    return convert_pt2e(prepared)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning")
def test_training_folds_every_batch_norm_of_the_zoo(
    name: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every parameter is trained, no batch norm is left, and all of it is on the NPU."""
    monkeypatch.syspath_prepend(str(repository / "examples"))
    entry = import_module("zoo").NETWORKS[name]
    converted = _trained(entry.build(), entry.example_inputs())
    left = [str(node.target) for node in converted.graph.nodes]
    assert not [row for row in left if "batch_norm" in row]
    artifact = compile_converted(
        torch.export.export(converted, entry.example_inputs()), U55, prove="off"
    )
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
