"""Mappings by hand and random programs, for the tests of everything that reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mizzen.mesh.machine import Machine
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import Network
from mizzen.mesh.program import MeshProgram

from .by_hand import BY_HAND
from .by_hand import on_chips as chips
from .by_hand import split_at_random as split
from .simulation.pipelines import random_pipeline


@pytest.fixture(params=BY_HAND)
def hand_mapping(request: pytest.FixtureRequest) -> Mapping:
    """Each of the mappings by hand."""
    return BY_HAND[request.param]()


@pytest.fixture(scope="session")
def by_hand() -> dict[str, Callable[[], Mapping]]:
    """The mappings by hand, by name."""
    return BY_HAND


@pytest.fixture(scope="session")
def split_at_random() -> Callable[[Network, int], Mapping]:
    """A mapping of a network on a grid, by a seed."""
    return split


@pytest.fixture(scope="session")
def pipeline() -> Callable[[int], MeshProgram]:
    """A random pipeline of a seed."""
    return random_pipeline


@pytest.fixture(scope="session")
def on_chips() -> Callable[[Machine, Sequence[int]], Mapping]:
    """A mapping on elements of some chips of a machine."""
    return chips
