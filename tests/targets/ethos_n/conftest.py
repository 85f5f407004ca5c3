"""Fixtures of Ethos-N's tests."""

from __future__ import annotations

import pytest

from .backdoor import Backdoor


@pytest.fixture
def backdoor() -> Backdoor:
    """Return a backdoor in which nothing waits."""
    return Backdoor()
