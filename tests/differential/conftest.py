"""Vela's code against the kernels, with what it gets wrong; ours is held against it elsewhere."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _velas(velas_code: None) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """Pin everything in this folder."""
