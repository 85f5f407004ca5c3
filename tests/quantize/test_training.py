"""Training with simulated quantization, and folding batch normalization afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

# torchao's own switch between training and inference
pytestmark = pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning")

IMAGES = (8, 3, 8, 8)


def convolution(inputs: int, outputs: int, groups: int = 1, size: int = 3) -> list[nn.Module]:
    layer = nn.Conv2d(inputs, outputs, size, padding=size // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(outputs, eps=1e-3)]


class Inverted(nn.Module):
    """MobileNetV2's block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        wide = 2 * channels
        self.body = nn.Sequential(
            *convolution(channels, wide, size=1),
            nn.ReLU6(),
            *convolution(wide, wide, groups=wide),
            nn.ReLU6(),
            *convolution(wide, channels, size=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class Residual(nn.Module):
    """ResNet's block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        middle = [*convolution(channels, channels), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*middle, *convolution(channels, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(x + self.body(x))


def classifier(*body: nn.Module, channels: int = 8) -> nn.Module:
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(channels, 4)]
    return nn.Sequential(*body, *tail)


NETWORKS: dict[str, Callable[[], Any]] = {
    "plain": lambda: classifier(*convolution(3, 8), nn.ReLU()),
    "bias": lambda: classifier(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
    "mobilenet_v2": lambda: classifier(*convolution(3, 8), nn.ReLU6(), Inverted(8)),
    "resnet": lambda: classifier(*convolution(3, 8), nn.ReLU(), Residual(8)),
    "before": lambda: classifier(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.BatchNorm2d(8)),
    "transposed": lambda: classifier(nn.ConvTranspose2d(3, 8, 2, stride=2), nn.BatchNorm2d(8)),
    "transposed alone": lambda: classifier(
        nn.ConvTranspose2d(3, 6, 2, stride=2), nn.ReLU(), *convolution(6, 8)
    ),
    "transposed in groups": lambda: classifier(
        nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 4, 2, stride=2, groups=4), *convolution(4, 8)
    ),
    "linear": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(192, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)
    ),
}


@torch.enable_grad()
def train(module: nn.Module, *, per_channel: bool = True) -> tuple[Any, list[float]]:
    """Train a prepared network for some steps on one batch; give it, and the losses."""
    config = get_symmetric_quantization_config(is_per_channel=per_channel, is_qat=True)
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(config)
    images, labels = torch.randn(IMAGES), torch.arange(8) % 4
    program = torch.export.export(module.train(), (images,)).module()
    prepared = prepare_qat_pt2e(program, quantizer)
    allow_exported_model_train_eval(prepared)
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.05, momentum=0.9)
    losses: list[float] = []
    for _ in range(25):
        loss = nn.functional.cross_entropy(prepared(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return prepared, losses


WHOLE_TENSORS = ("mobilenet_v2", "transposed in groups")
"""Networks that train with a scale for each tensor too; the sweep does with all."""


def ways(name: str) -> list[Any]:
    """Return a network with a scale for each channel and for each tensor, as parameters."""
    marks = () if name in WHOLE_TENSORS else (pytest.mark.sweep,)
    return [pytest.param(name, True), pytest.param(name, False, marks=marks)]


@pytest.mark.parametrize(("name", "per_channel"), [row for name in NETWORKS for row in ways(name)])
def test_the_converted_network_is_the_trained_one(name: str, per_channel: bool) -> None:
    prepared, losses = train(NETWORKS[name](), per_channel=per_channel)
    assert sum(losses[-5:]) < sum(losses[:5])
    prepared.eval()
    images = torch.randn(IMAGES)
    for module in prepared.modules():
        if hasattr(module, "observer_enabled"):
            module.observer_enabled.fill_(0)
    expected = prepared(images)
    converted = convert_pt2e(prepared)
    names = [str(node.target) for node in converted.graph.nodes]
    assert not [name for name in names if "batch_norm" in name or "sqrt" in name]
    error = (converted(images) - expected).square().mean()
    # Folding moves roundings by a step here and there: 40 dB is one step of 8 bits, and what the
    # bias' rounding and a rounding the other way add over a few layers is far from 20.
    assert 10 * torch.log10(expected.square().mean() / error) > 20


def test_weights_train_through_the_rounding() -> None:
    module = NETWORKS["plain"]()
    before = module[0].weight.detach().clone()
    prepared, _ = train(module)
    after = dict(prepared.named_parameters())["0.weight"]
    assert not torch.equal(before, after)


def test_recurrent_layers_train() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.GRU(5, 8)
            self.head = nn.Linear(8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.layer(x)[0][-1])

    config = get_symmetric_quantization_config(is_qat=True)
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(config)
    x = torch.randn(6, 4, 5)
    with pytest.warns(UserWarning, match="were assigned during export"):
        program = torch.export.export(Last(), (x,)).module()
    with torch.enable_grad():
        prepared = prepare_qat_pt2e(program, quantizer)
        optimizer = torch.optim.SGD(prepared.parameters(), lr=0.1, momentum=0.9)
        losses: list[float] = []
        for _ in range(20):
            loss = (prepared(x) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    # The output's range follows slowly, and holds back what lies beyond it.
    assert losses[-1] < 0.8 * losses[0]
    converted = convert_pt2e(prepared)
    assert [str(n.target) for n in converted.graph.nodes].count(
        "mizzen.gru_steps_quantized.default"
    ) == 1
