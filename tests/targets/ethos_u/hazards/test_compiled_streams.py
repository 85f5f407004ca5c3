"""Streams of the compiler have no hazards: every real network, on every accelerator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen
from mizzen.targets.ethos_u.config import ACCELERATORS

NETWORKS = (
    "ad01_int8",
    "audio_preprocessor_int8",
    "hello_world_int8",
    "kws_ref_model",
    "micro_speech_quantized",
    "person_detect",
    "pretrainedResnet_quant",
    "vww_96_int8",
)
QUICK = ("ethos-u55-32", "ethos-u65-512", "ethos-u85-256")


def check(path: Path, accelerator: str, optimise: str) -> None:
    artifact = mizzen.compile(path, accelerator, optimise=optimise)
    assert any(step.on_npu for step in artifact.steps)
    assert [found.render() for found in artifact.hazards] == []


@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", QUICK)
@pytest.mark.parametrize("name", ["kws_ref_model", "person_detect"])
def test_network(
    model_file: Callable[[str], Path], name: str, accelerator: str, optimise: str
) -> None:
    check(model_file(f"{name}.tflite"), accelerator, optimise)


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", NETWORKS)
def test_network_everywhere(
    model_file: Callable[[str], Path], name: str, accelerator: str, optimise: str
) -> None:
    check(model_file(f"{name}.tflite"), accelerator, optimise)
