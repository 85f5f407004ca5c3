"""Programs whose batch may have any size: what is made anew in them keeps it open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*were assigned during export:UserWarning"),
]

STEPS, CHANNELS = 6, 8


class Calls(nn.Module):
    """A function of a sequence, with a layer that it may use."""

    def __init__(self, function: Callable[..., torch.Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.layers)


def filled(x: torch.Tensor) -> torch.Tensor:
    batch = x.shape[0]
    ones = torch.ones(batch, 1, CHANNELS) + torch.full((batch, 1, 1), 0.5)
    return torch.where(x > 0.25, x + ones, torch.zeros_like(x))


def first(x: torch.Tensor, layer: nn.Module) -> torch.Tensor:
    return layer(x)[0]


def whole(x: torch.Tensor, layer: nn.Module) -> torch.Tensor:
    return layer(x)


def products(x: torch.Tensor) -> torch.Tensor:
    return x[:, None] @ x.transpose(1, 2)[:, None]


def mean_of_batch(x: torch.Tensor) -> torch.Tensor:
    return x.sum(0) / x.shape[0]


def viewed(x: torch.Tensor, layer: nn.Module) -> torch.Tensor:
    return layer(x.reshape(x.size(0), -1))


def halves(x: torch.Tensor) -> torch.Tensor:
    return functional.pad(x.reshape(2 * x.size(0), -1, CHANNELS), (0, 0, 1, 1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: Calls(first, nn.LSTM(CHANNELS, 4, batch_first=True)),
    "gru": lambda: Calls(first, nn.GRU(CHANNELS, 4, batch_first=True)),
    "group norm": lambda: Calls(whole, nn.GroupNorm(2, STEPS)),
    "products": lambda: Calls(products),
    "attention": lambda: nn.TransformerEncoderLayer(CHANNELS, 2, 16, batch_first=True),
    "filled": lambda: Calls(filled),
    "a mean of the batch": lambda: Calls(mean_of_batch),
    "viewed": lambda: Calls(viewed, nn.Linear(STEPS * CHANNELS, 4)),
    "twice the batch": lambda: Calls(halves),
}


def prepared(name: str, *, is_qat: bool) -> Any:
    torch.manual_seed(0)
    config = get_symmetric_quantization_config(is_qat=is_qat)
    quantizer = EthosUQuantizer("ethos-u85-256").set_global(config)
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    module = NETWORKS[name]().train(is_qat)
    example = torch.randn(8, STEPS, CHANNELS)
    program = torch.export.export(module, (example,), dynamic_shapes=shapes)
    prepare: Any = prepare_qat_pt2e if is_qat else prepare_pt2e
    return prepare(program.module(check_guards=False), quantizer)


@pytest.mark.parametrize("name", NETWORKS)
def test_calibration_takes_batches_of_any_size(name: str) -> None:
    program = prepared(name, is_qat=False)
    batches = [torch.randn(size, STEPS, CHANNELS) for size in (8, 5, 2)]
    with torch.no_grad():
        for batch in batches:
            program(batch)
        converted: Any = convert_pt2e(program)
        results = [converted(batch) for batch in batches]
        alone = torch.cat([converted(batches[0][i : i + 2]) for i in range(0, 8, 2)])
    if name != "a mean of the batch":
        assert results[0].shape == alone.shape
        # Each inference is computed by itself, but in blocks of another size.
        assert (results[0] - alone).abs().max() <= 0.05 * results[0].abs().max()


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("products", "filled")])
@torch.enable_grad()
def test_training_takes_batches_of_any_size(name: str) -> None:
    program = prepared(name, is_qat=True)
    allow_exported_model_train_eval(program)
    optimizer = (
        torch.optim.SGD(program.parameters(), lr=1e-3) if list(program.parameters()) else None
    )
    for size in (8, 5, 8, 2):
        loss = program(torch.randn(size, STEPS, CHANNELS)).square().mean()
        assert torch.isfinite(loss)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    program.eval()
    converted: Any = convert_pt2e(program)
    assert torch.isfinite(converted(torch.randn(3, STEPS, CHANNELS))).all()


@torch.enable_grad()
def test_a_number_that_is_rounded_onto_a_pole_trains() -> None:
    """The variance of some rows is 0 in the steps of those of others."""
    torch.manual_seed(0)
    config = get_symmetric_quantization_config(is_qat=True)
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(config)
    rows = torch.randn(16, 8)
    rows[::2] *= 1e-3
    program = torch.export.export(
        nn.Sequential(nn.Linear(8, 8, bias=False), nn.LayerNorm(8)), (rows,)
    )
    trained: Any = prepare_qat_pt2e(program.module(check_guards=False), quantizer)
    trained(rows).square().mean().backward()
    for name, parameter in trained.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name


def test_attention_keeps_its_dropout_in_training() -> None:
    program = prepared("attention", is_qat=True)
    named = [str(node.target) for node in program.graph.nodes]
    assert named.count("aten.scaled_dot_product_attention.default") == 0
    assert named.count("aten.dropout.default") == 4
