"""Models of every form that people write: each works, or is refused with what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

Build = Callable[..., Any]

U55 = "ethos-u55-128"
U85 = "ethos-u85-256"


class _Relu6(nn.Module):
    """Clamps in every way that there is to write ReLU6."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.third = nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu6(self.first(x))
        x = torch.clamp(self.second(x), 0, 6)
        return nn.functional.hardtanh(self.third(x), 0.0, 6.0)


class _InPlace(nn.Module):
    """Changes tensors in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.act = nn.ReLU6(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.conv(x))
        y += 1.0
        y.mul_(0.5)
        return y


class _InPlaceOfView(nn.Module):
    """Writes through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        y[:, :4].add_(1.0)
        return y


class _Shared(nn.Module):
    """Uses the same weights several times."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.linear = nn.Linear(4, 4)
        self.again = nn.Linear(4, 4)
        self.again.weight = self.linear.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv(torch.relu(self.conv(x)))).mean((2, 3))
        return self.again(torch.relu(self.linear(x)))


class _TwoInputs(nn.Module):
    """Takes two tensors of different shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.linear = nn.Linear(6, 4)

    def forward(self, image: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        return self.conv(image) * self.linear(row)[:, :, None, None]


class _Tuple(nn.Module):
    """Gives a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, padding=1)
        self.first = nn.Conv2d(8, 2, 1)
        self.second = nn.Conv2d(8, 5, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.body(x))
        return self.first(y), self.second(y)


class _Dict(_Tuple):
    """Gives a dictionary."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride] another output is the point
        y = torch.relu(self.body(x))
        return {"boxes": self.second(y), "scores": torch.sigmoid(self.first(y))}


class _SameTwice(_Tuple):
    """Gives one tensor twice, and its input."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] another output is the point
        y = self.body(x)
        return y, y, x


class _Buffer(nn.Module):
    """Adds to a buffer in place and gives it."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("total", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(torch.sigmoid(self.linear(x)))
        return self.total * 0.25


class _Batched(nn.Module):
    """Keeps a batch all the way: convolution, pool, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.pool = nn.AvgPool2d(2)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.pool(torch.relu(self.conv(x))).mean((2, 3)))


IMAGE = (1, 3, 12, 12)
MODELS: dict[str, tuple[type[nn.Module], tuple[tuple[int, ...], ...]]] = {
    "relu6": (_Relu6, (IMAGE,)),
    "in place": (_InPlace, (IMAGE,)),
    "in place, of a view": (_InPlaceOfView, (IMAGE,)),
    "shared weights": (_Shared, ((1, 4, 8, 8),)),
    "two inputs": (_TwoInputs, (IMAGE, (1, 6))),
    "tuple": (_Tuple, (IMAGE,)),
    "dict": (_Dict, (IMAGE,)),
    "same output twice": (_SameTwice, (IMAGE,)),
    "buffer": (_Buffer, ((1, 4),)),
    "batch of 4": (_Batched, ((4, 3, 12, 12),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_on_u55_what_the_converted_program_gives(name: str, built: Build) -> None:
    """No operator here has a reason to leave the NPU but a race in the compiler's stream.

    One step: the program rounds real numbers, the NPU multiplies by 32-bit integers; ties fall
    to either side.
    """
    kind, shapes = MODELS[name]
    network = built(kind(), *(torch.randn(shape) for shape in shapes), accelerator=U55)
    assert [why for why in network.on_cpu.values() if "nothing makes it wait" not in why] == []
    assert network.steps_off() <= 1


@pytest.mark.parametrize("name", MODELS)
def test_a_model_compiles_for_u85_as_one_region(name: str, built: Build) -> None:
    """The same models, for another accelerator."""
    kind, shapes = MODELS[name]
    network = built(kind(), *(torch.randn(shape) for shape in shapes), accelerator=U85)
    assert network.on_cpu == {}
    assert network.artifact.accelerator == U85
