"""The range of activations is that of torchao's own search."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torchao.quantization.pt2e.observer import HistogramObserver

from mizzen.quantize.observers import ActivationObserver

KINDS: dict[str, Callable[[int], torch.Tensor]] = {
    "normal": torch.randn,
    "positive": lambda count: torch.relu(torch.randn(count)),
    "skewed": lambda count: torch.randn(count).exp(),
    "whole": lambda count: torch.randint(-3, 4, (count,)).float(),
    "outlier": lambda count: torch.cat([torch.randn(count), torch.tensor([1e4])]),
    "zero": torch.zeros,
}


@pytest.mark.parametrize("count", [1, 7, 300, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_range_is_torchaos(kind: str, count: int) -> None:
    torch.manual_seed(count)
    observer = ActivationObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine)
    for factor in (1.0, 2.5):
        observer(KINDS[kind](count) * factor)
    theirs = HistogramObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine)
    theirs.load_state_dict(observer.state_dict())
    for found, wanted in zip(observer.calculate_qparams(), theirs.calculate_qparams(), strict=True):
        assert torch.equal(found, wanted)


def test_counts_of_any_sizes_are_searched_as_torchao_does() -> None:
    """Many bins without a value, and values that float32 cannot count one by one."""
    for seed in range(12):
        torch.manual_seed(seed)
        observer = ActivationObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine)
        observer(torch.randn(10))
        counts = torch.rand(observer.bins) * (torch.rand(observer.bins) < 0.1 * seed)
        observer.histogram.copy_(counts * 10.0**seed)
        theirs = HistogramObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine)
        theirs.load_state_dict(observer.state_dict())
        for found, wanted in zip(
            observer.calculate_qparams(), theirs.calculate_qparams(), strict=True
        ):
            assert torch.equal(found, wanted), seed
