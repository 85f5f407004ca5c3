"""An artifact of several parts, and what a board with a slow flash would count of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.cost.reporting import configuration_of
from mizzen.artifact.artifact import Artifact
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def parts() -> Artifact:
    """The example, cut into three parts of the NPU by two operators on the CPU."""
    return mizzen.compile(
        ROOT / "examples" / "digits" / "digits.tflite",
        "ethos-u55-128",
        ignore_ops=("DEPTHWISE_CONV_2D", "MAX_POOL_2D"),
        prove="off",
    )


@pytest.fixture(scope="session")
def whole() -> Artifact:
    """The example, all of it on the NPU."""
    digits = ROOT / "examples" / "digits" / "digits.tflite"
    return mizzen.compile(digits, "ethos-u55-128", prove="off")


@pytest.fixture(scope="session")
def system(parts: Artifact) -> EthosUConfiguration:
    """The system that it was compiled for."""
    found = configuration_of(parts, None)
    assert found is not None
    return found
