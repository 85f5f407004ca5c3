"""Real networks of others: not one integer differs, on each family of Ethos-U."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mizzen.analysis.comparison.exactness import compare
from mizzen.report.comparison import Outcome

SEEN = {Outcome.EQUAL, Outcome.FUSED, Outcome.UNREAD}


def judge(file: Path, accelerator: str) -> None:
    found = compare(file, accelerator, prove="off")
    assert found.holds
    assert found.differing == 0
    assert {row.outcome for row in found.layers} <= SEEN
    assert found.count(Outcome.EQUAL) >= len(found.layers) * 0.45


@pytest.mark.parametrize("name", ["kws_ref_model", "rnnoise_INT8", "dnn_s_quantized"])
def test_small_networks(name: str, model_file: Callable[[str], Path]) -> None:
    judge(model_file(f"{name}.tflite"), "ethos-u85-256")


def test_maps_that_our_own_code_turns(model_file: Callable[[str], Path]) -> None:
    """Layers lie in memory with their axes in another order, and are the tensors all the same."""
    judge(model_file("kws_ref_model.tflite"), "ethos-u55-128")


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_every_network(accelerator: str, models: Path) -> None:
    files = sorted(models.glob("*.tflite"))
    assert files
    for file in files:
        judge(file, accelerator)
