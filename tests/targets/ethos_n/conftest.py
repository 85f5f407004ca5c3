"""Fixtures of Ethos-N's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mizzen.targets.ethos_n.network import Network

from . import executing
from .backdoor import Backdoor


@pytest.fixture
def backdoor() -> Backdoor:
    """Return a backdoor in which nothing waits."""
    return Backdoor()


@pytest.fixture
def network_of() -> Callable[[str], Network]:
    """Return what reads a network in the text form."""
    return executing.network_of
