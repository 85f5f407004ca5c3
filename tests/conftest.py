"""What every test may ask for: the folder of real models, one property-test profile, the oracles.

Real models are not part of the repository. They are found in the folder that the environment
variable MIZZEN_MODELS names, or in ``../shared/models`` beside the repository.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
ORACLES = {
    "TensorFlow Lite Micro (tflite_micro)": "tflite_micro",
    "LiteRT (ai_edge_litert)": "ai_edge_litert",
    "Vela (ethosu.vela)": "ethosu",
}

# Cores are shared with other work when tests run: time says nothing about an example.
hypothesis.settings.register_profile("mizzen", deadline=None, print_blob=True)
hypothesis.settings.load_profile("mizzen")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the texts that tests compare with what the program prints now",
    )


@pytest.fixture(scope="session")
def update_golden(pytestconfig: pytest.Config) -> bool:
    """Whether golden texts are to be rewritten."""
    return bool(pytestconfig.getoption("--update-golden"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of real models; skips the test where there is none."""
    if not MODELS.is_dir():
        pytest.skip(f"no real models: {MODELS} is no folder (set MIZZEN_MODELS)")
    return MODELS


@pytest.fixture(scope="session")
def model_file(models: Path) -> Callable[[str], Path]:
    """Give the path of a real model by file name; skips the test where it is missing."""

    def find(name: str) -> Path:
        if not (models / name).is_file():
            pytest.skip(f"no real model {name} in {models}")
        return models / name

    return find


def pytest_report_header() -> list[str]:
    """Say which oracles and models this run has: a silent skip is a hole."""
    present = [name for name, module in ORACLES.items() if importlib.util.find_spec(module)]
    absent = [name for name in ORACLES if name not in present]
    files = sorted(MODELS.glob("*.tflite"))
    lines = [f"oracles: {', '.join(present) or 'none'}"]
    lines += [f"oracles missing: {', '.join(absent)}"] if absent else []
    return [*lines, f"models: {len(files)} in {MODELS}"]


@pytest.fixture(scope="session")
def tosa_oracle() -> Any:
    """Arm's reference model of TOSA: called with a graph and its inputs, it gives the outputs."""
    from .reference.tosa_oracle import find

    return find()
