"""Attention whose scores are hidden, in all the ways that networks do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor
from torch.nn import functional

from .exactness import Computes, lowered

SIZE = 5
LOWER = torch.ones(SIZE, SIZE).tril().bool()
BELOW = torch.where(LOWER, 0.0, -torch.inf)
EMPTY = LOWER & (torch.arange(SIZE) != 2)[:, None]
LEAST = torch.finfo(torch.float32).min
attend: Any = functional.scaled_dot_product_attention


def weights(scores: Tensor) -> Tensor:
    """Return what attention multiplies values by."""
    return torch.softmax(scores, -1)


def scores_of(x: Tensor) -> Tensor:
    """Return scores of rows with each other."""
    return x @ x.transpose(-1, -2) * 0.5


BY_CONSTANTS: dict[str, Callable[[Tensor], Tensor]] = {
    "masked_fill": lambda x: weights(scores_of(x).masked_fill(~LOWER, -torch.inf)),
    "where": lambda x: weights(torch.where(LOWER, scores_of(x), -torch.inf)),
    "where by the least": lambda x: weights(torch.where(~LOWER, LEAST, scores_of(x))),
    "sum": lambda x: weights(scores_of(x) + BELOW),
    "sum by a large number": lambda x: weights(scores_of(x) + (1.0 - LOWER.float()) * -1e9),
    "baddbmm": lambda x: weights(torch.baddbmm(BELOW, x, x.transpose(-1, -2), alpha=0.5)),
    "rows without scores": lambda x: attend(x, x, x, attn_mask=EMPTY),
    "rows of infinities": lambda x: attend(x, x, x, attn_mask=torch.where(EMPTY, 0.0, -torch.inf)),
}


def _rows() -> Tensor:
    return torch.randn(2, SIZE, 8, generator=torch.Generator().manual_seed(2)) * 0.7


def _is_as_in_floating_point(function: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Half a step of scores in [-16, 4] is below 0.05, and a weight is as much off of itself.

    Values below 2 then are off by less than 0.1, and sums of the products' steps by a hundredth.
    """
    found = lowered(function, *inputs)
    assert found.on_cpu == {}
    assert found.steps_off() <= 1
    with torch.no_grad():
        quantized = found.exported.module(check_guards=False)(*inputs)
        assert float((quantized - Computes(function)(*inputs)).abs().max()) < 0.11


@pytest.mark.parametrize("name", BY_CONSTANTS)
def test_scores_hidden_by_a_constant(name: str) -> None:
    _is_as_in_floating_point(BY_CONSTANTS[name], _rows())


BY_INPUTS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = {
    "infinities": (lambda x, mask: weights(scores_of(x) + mask), BELOW),
    "infinities of an attention": (lambda x, mask: attend(x, x, x, attn_mask=mask), BELOW),
    "a large number": (lambda x, mask: weights(scores_of(x) + mask), BELOW.clamp(min=-1e9)),
    "ones": (lambda x, mask: weights(scores_of(x) + (1.0 - mask) * -1e9), LOWER.float()),
    "zeros": (
        lambda x, mask: weights(scores_of(x).masked_fill(mask == 0, -torch.inf)),
        LOWER.float(),
    ),
    "truths": (lambda x, mask: attend(x, x, x, attn_mask=mask), LOWER),
}


@pytest.mark.parametrize("name", BY_INPUTS)
def test_scores_hidden_by_an_input(name: str) -> None:
    function, mask = BY_INPUTS[name]
    _is_as_in_floating_point(function, _rows(), mask)


def test_heads_that_share_keys_and_values() -> None:
    def shared(x: Tensor) -> Tensor:
        return attend(torch.cat([x, x * 0.5], 1), x, x, enable_gqa=True)

    _is_as_in_floating_point(shared, _rows()[:, None])
