"""Networks of this folder are compiled by Vela, whatever the NPU."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _by_vela(velas_code: None) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """Nothing here is made by rules of our own."""
