"""Whoever's code it is, as much of a network is on the NPU as with Vela's, or more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen

from .networks import report_of


def on_npu(path: Path, accelerator: str, generator: str) -> tuple[int, int]:
    """Return the MACs and the operators of a network that are on the NPU."""
    options = {"generator": generator}
    artifact = mizzen.compile(path, accelerator, prove="off", target_options=options)
    report = report_of(artifact)
    return report.macs_on_npu, len(report.on_npu)


def require_no_less(path: Path, accelerator: str) -> None:
    macs, operators = on_npu(path, accelerator, "vela")
    assert operators > 0
    for generator in ("best", "own"):
        ours = on_npu(path, accelerator, generator)
        assert ours[0] >= macs
        assert ours[1] >= operators


@pytest.mark.parametrize("name", ["micro_speech_quantized"])
def test_no_less_is_on_the_npu_than_with_vela(model_file: Callable[[str], Path], name: str) -> None:
    require_no_less(model_file(f"{name}.tflite"), "ethos-u55-128")


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u55-256", "ethos-u65-512"])
def test_no_less_of_any_network(network_file: Path, accelerator: str) -> None:
    require_no_less(network_file, accelerator)
