"""What makes code of our own is changed by many tests here."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _anew(searched_anew: None) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """Remember nothing from test to test in this folder."""
