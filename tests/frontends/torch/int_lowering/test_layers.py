"""Layers with weights: convolutions of all kinds, linear and recurrent layers."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import nn

from .exactness import image, lowered

LAYERS: dict[str, nn.Module] = {
    "conv2d": nn.Conv2d(4, 6, 3, padding=1),
    "strides that leave pixels out": nn.Conv2d(4, 6, 3, stride=2),
    "padding in front is kept": nn.Conv2d(4, 6, 4, stride=3, padding=1),
    "same": nn.Conv2d(4, 6, 4, padding="same", dilation=2),
    "depthwise": nn.Conv2d(4, 8, 3, groups=4, bias=False),
    "groups": nn.Conv2d(4, 6, 3, groups=2),
    "transposed": nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
    "transposed in groups": nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2),
    "transposed and dilated": nn.ConvTranspose2d(4, 3, 2, dilation=2),
    "transposed with much padding": nn.ConvTranspose2d(4, 3, 2, padding=3, stride=2),
    "linear": nn.Linear(6, 5),
}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_pytorchs_within_a_step(name: str, bits: int) -> None:
    """Of 16 bits within four: a rescaling by 15 bits is off more often."""
    torch.manual_seed(0)
    found = lowered(LAYERS[name], image(), bits=bits)
    assert found.on_cpu == {}
    assert found.steps_off() <= (1 if bits == 8 else 4)


ROWS: dict[str, nn.Module] = {
    "conv1d": nn.Conv1d(4, 6, 3, padding=1),
    "conv1d in groups": nn.Conv1d(4, 4, 3, stride=2, groups=2),
    "conv_transpose1d": nn.ConvTranspose1d(4, 3, 3, stride=2),
}


@pytest.mark.parametrize("name", ROWS)
def test_layers_of_rows(name: str) -> None:
    torch.manual_seed(0)
    found = lowered(ROWS[name], image()[:, :, 0])
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


class _Attends(nn.Module):
    """Attention of a row to others, whose three projections are parts of one weight, or three."""

    def __init__(self, **options: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **options)  # pyright: ignore[reportArgumentType] PyTorch's options have several types

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return self.attention(query, key, value)[0]


ATTENTIONS: dict[str, tuple[dict[str, int], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "of three tensors": ({}, (4, 1, 8), (5, 1, 8), (5, 1, 8)),
    "without a batch": ({}, (4, 8), (5, 8), (5, 8)),
    "of other widths": ({"kdim": 6, "vdim": 5}, (4, 1, 8), (5, 1, 6), (5, 1, 5)),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name: str) -> None:
    torch.manual_seed(0)
    options, *shapes = ATTENTIONS[name]
    found = lowered(_Attends(**options), *map(torch.randn, shapes))
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


@pytest.mark.parametrize("transposed", [False, True])
def test_the_one_convolution_of_core_aten(transposed: bool) -> None:
    """Which other programs have instead of its special forms."""
    weight = nn.Parameter(torch.randn(4, 4, 3, 3, generator=torch.Generator().manual_seed(1)))

    class General(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.convolution(
                x, self.weight, None, [2, 2], [1, 1], [1, 1], transposed, [0, 0], 1
            )

    found = lowered(General(), image())
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_have_the_operators_own_integers(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    # PyTorch's recurrent layers hold flat copies of their weights, which export sees first.
    warnings.filterwarnings("ignore", "The tensor attributes .* were assigned")
    found = lowered(kind(5, 4, bidirectional=True), torch.randn(3, 1, 5))
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


def test_an_image_without_a_batch_is_refused_where_a_layer_has_weights() -> None:
    found = lowered(nn.Conv2d(4, 6, 3), image()[0])
    assert found.on_cpu == {"aten.conv2d": "its input has no batch dimension"}
