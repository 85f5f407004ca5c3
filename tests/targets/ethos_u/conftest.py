"""Real programs for the tests of this target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import streams


@pytest.fixture(scope="session")
def archive(
    model_file: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], bytes]:
    """Return Vela's raw archive of a real model for an accelerator."""
    pytest.importorskip("ethosu.regor", reason="Vela is not installed")
    folder = tmp_path_factory.getbasetemp()
    return lambda model, accelerator: streams.archive(model_file(model), accelerator, folder)
