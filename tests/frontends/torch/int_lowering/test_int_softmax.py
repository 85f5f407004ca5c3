"""Softmax of 16 bits and its kin: next to the exact function, whatever the scores."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor, nn

from mizzen.torch import compile_converted

from .exactness import Computes, lowered

functional = nn.functional

BOUND = 1
"""Steps. An exponential is off by 2**-15 of it, the inverse of the sum by 2**-18, together by less
than half a step of a weight, which is greatest where it is a half; and it is rounded once."""


def along(function: Callable[..., Tensor], dim: int | tuple[int, ...]) -> Computes:
    """Return a module of a function along an axis, or several."""

    def weights(x: Tensor) -> Tensor:
        return function(x, dim)

    return Computes(weights)


def scores(spread: float, rows: int = 8, terms: int = 64) -> Tensor:
    """Return rows of random scores."""
    return spread * torch.randn(1, rows, terms, generator=torch.Generator().manual_seed(2))


def with_a_peak(terms: int) -> Tensor:
    """Return scores of which one is 11 above all others, which are the same: these sum to much."""
    return torch.cat([torch.full((1, 1, terms - 1), -11.0), torch.zeros(1, 1, 1)], dim=-1)


SCORES: dict[str, Tensor] = {
    "nearly equal": scores(0.1),
    "some way apart": scores(4),
    "far apart": scores(30),
    "many": scores(4, 2, 512),
    "very many": scores(3, 1, 4096),
    "two": scores(2, 64, 2),
    "three": scores(2, 8, 3),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax, torch.logsumexp])
def test_weights_of_16_bits_are_next_to_pytorchs(
    function: Callable[[Tensor, int], Tensor], name: str
) -> None:
    """In steps of 16 bits whose intermediate results sum up to too much, it is 1,500 steps off."""
    found = lowered(along(function, -1), SCORES[name], bits=16)
    assert found.on_cpu == {}
    assert found.steps_off() <= BOUND


@pytest.mark.parametrize(("terms", "bound"), [(256, 2), (2048, 12)])
def test_many_equal_weights_below_a_peak_are_rounded_one_way(terms: int, bound: int) -> None:
    """Each by half of 2**-22 of a sum, in which the peak has 2**-0.5: a step for 181 of them."""
    found = lowered(along(functional.softmax, -1), with_a_peak(terms), bits=16)
    assert found.steps_off() <= bound


def test_a_single_weight_is_all() -> None:
    """The greatest number that 16 bits hold stands for 1."""
    found = lowered(along(functional.softmax, -1), scores(2, 8, 1), bits=16)
    assert found.steps_off() <= BOUND


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_sum_is_along_any_axis(dim: int) -> None:
    """Of three."""
    found = lowered(along(functional.softmax, dim), scores(3).reshape(4, 8, 16), bits=16)
    assert found.steps_off() <= BOUND


def test_logsumexp_is_along_several_axes() -> None:
    """Two of four."""
    found = lowered(along(torch.logsumexp, (1, 3)), scores(3).reshape(2, 4, 4, 16), bits=16)
    assert found.steps_off() <= BOUND


def test_weights_of_8_bits_are_taken_apart() -> None:
    """As before: their integers have ranges inside."""
    found = lowered(along(functional.softmax, -1), SCORES["some way apart"])
    assert found.kinds.count("TABLE") == 2
    assert "CLZ" not in found.kinds


def test_more_terms_than_32_bits_hold_are_pytorchs() -> None:
    """With the reason."""
    found = lowered(along(functional.softmax, -1), scores(1, 1, (1 << 16) + 1), bits=16)
    assert found.on_cpu == {"aten.softmax": "its sum has 65537 terms, and 32 bits hold 65536"}


@pytest.mark.parametrize("shape", [(1, 8, 64), (1, 2, 2, 4, 32)], ids=len)
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax, torch.logsumexp])
def test_weights_of_16_bits_are_on_the_npu(
    function: Callable[[Tensor, int], Tensor], accelerator: str, shape: tuple[int, ...]
) -> None:
    """As a whole, and the stream gives what the graph says."""
    found = lowered(along(function, -1), scores(4).reshape(shape), bits=16)
    assert found.steps_off() <= BOUND
    report = compile_converted(found.exported, accelerator).report
    assert report is not None
    assert report.on_cpu == ()
    assert report.proof.differing == ()
    assert report.proof.equal > 0
