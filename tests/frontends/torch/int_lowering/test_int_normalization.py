"""Normalization of 16 bits: next to PyTorch's, however rows are spread."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor, nn

from mizzen.torch import compile_converted

from .exactness import lowered

BOUND = 1
"""Steps. An inverse root is off by 2**-18 of it, a distance by 2**-15 of the input's step, and the
result is rounded once: together less than a step and a half from what PyTorch rounds."""


def rows(count: int = 64, low: float = -1, high: float = 1, offset: float = 1) -> Tensor:
    """Return rows whose spreads are from 10**low to 10**high, and offsets as large."""
    random = torch.Generator().manual_seed(4)
    spread = 10 ** (torch.rand(1, 16, 1, generator=random) * (high - low) + low)
    return spread * (torch.randn(1, 16, count, generator=random) + offset)


def peaks(count: int = 64) -> Tensor:
    """Return rows of which one number is far from all others, which are the same."""
    found = torch.zeros(1, 16, count)
    found[..., 0] = torch.logspace(-2, 1, 16)
    return found + 1


ROWS = {
    "of one spread": rows(low=0, high=0),
    "of all spreads": rows(low=-3),
    "hardly spread": rows(low=-5, high=-4),
    "far from zero": rows(low=-1, high=1, offset=20),
    "many": rows(1000),
    "very many": rows(4096),
    "two": rows(2),
    "peaks": peaks(),
    "all the same": torch.linspace(-3, 3, 16).reshape(1, 16, 1).expand(1, 16, 8),
}


class Norm(nn.Module):
    """A normalization along the last axis."""

    def __init__(self, name: str, count: int, *, weighted: bool = False) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(5)
        self.norm = nn.LayerNorm(count) if name == "layer" else nn.RMSNorm(count)
        if weighted:
            self.norm.weight.data = torch.randn(count, generator=random)
        if weighted and isinstance(self.norm, nn.LayerNorm):
            self.norm.bias.data = 3 * torch.randn(count, generator=random)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("name", ROWS)
def test_normalized_rows_of_16_bits_are_next_to_pytorchs(name: str, kind: str) -> None:
    """Whose variances have a range of their own, rows of a hundredth of others are off by 5,000."""
    found = lowered(Norm(kind, ROWS[name].shape[-1]), ROWS[name], bits=16)
    assert found.on_cpu == {}
    assert found.steps_off() <= BOUND


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_weights_of_both_signs_and_biases_are_part_of_it(kind: str) -> None:
    """Which are rounded once with the rest."""
    found = lowered(Norm(kind, 64, weighted=True), rows(), bits=16)
    assert found.steps_off() <= BOUND
    assert found.kinds.count("TABLE") == 1


def test_one_peak_among_many_numbers_is_further_off() -> None:
    """Squares of 767 equal numbers are rounded by half of 2**-20 of the peak's each, all one way.

    So the sum is off by 2**-11.4 of it and its root, the peak of 32767 steps, by half of that.
    """
    assert lowered(Norm("layer", 768), peaks(768), bits=16).steps_off() <= 6


def test_it_is_along_several_axes() -> None:
    """The last two of four."""
    x = rows().reshape(2, 8, 8, 8)
    assert lowered(nn.LayerNorm([8, 8]), x, bits=16).steps_off() <= BOUND


@pytest.mark.parametrize("module", [nn.GroupNorm(4, 16), nn.InstanceNorm1d(16)])
def test_groups_and_instances_are_normalized_likewise(module: nn.Module) -> None:
    """Between reshapes; weights and biases that do nothing are left out."""
    assert lowered(module, rows(), bits=16).steps_off() <= BOUND


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-2, 1e3])
def test_any_epsilon_is_added_to_rows_of_any_spread(epsilon: float) -> None:
    """Also where it is more than any square."""
    found = lowered(nn.LayerNorm(64, eps=epsilon), rows(low=-3), bits=16)
    assert found.steps_off() <= BOUND


def test_rows_of_8_bits_are_taken_apart() -> None:
    """As before."""
    found = lowered(nn.LayerNorm(64), rows())
    assert "CLZ" not in found.kinds


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_normalized_rows_of_16_bits_are_on_the_npu(kind: str, accelerator: str) -> None:
    """As a whole, and the stream gives what the graph says."""
    found = lowered(Norm(kind, 64, weighted=True), rows(), bits=16)
    report = compile_converted(found.exported, accelerator).report
    assert report is not None
    assert report.on_cpu == ()
    assert report.proof.differing == ()
    assert report.proof.equal > 0
