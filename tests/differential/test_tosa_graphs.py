"""Random TOSA networks: the simulated NPU gives what TOSA's operations mean, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.graph import DType, Graph
from mizzen.package.tosa import write
from mizzen.reference import evaluate

from .tosa_graphs import RandomGraph
from .tosa_graphs_u85 import RandomGraphOfU85

ETHOS_U85 = [f"ethos-u85-{macs}" for macs in (128, 256, 512, 1024, 2048)]
RANGES = {DType.INT8: (-128, 128), DType.INT16: (-3000, 3000)}


def require_equal(graph: Graph, dtype: DType, accelerator: str) -> None:
    random = np.random.default_rng(0)
    inputs = [
        random.integers(*RANGES[dtype], value.shape).astype(dtype.numpy) for value in graph.inputs
    ]
    expected = evaluate(graph, inputs)
    found: Any = mizzen.compile(write(graph), accelerator, prove="off").run(*inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    for theirs, ours in zip(expected, outputs, strict=True):
        np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int, dtype: DType) -> None:
    require_equal(RandomGraph(seed, dtype).grow(6), dtype, "ethos-u55-128")


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("seed", range(40, 80))
def test_random_networks_on_u85(seed: int, dtype: DType) -> None:
    require_equal(RandomGraph(seed, dtype).grow(6), dtype, "ethos-u85-256")


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("seed", range(20))
def test_random_networks_of_all_that_u85_has(seed: int, dtype: DType) -> None:
    accelerator = ETHOS_U85[seed % len(ETHOS_U85)]
    require_equal(RandomGraphOfU85(seed, dtype).grow(9), dtype, accelerator)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("accelerator", ETHOS_U85)
@pytest.mark.parametrize("seed", range(20, 120))
def test_many_random_networks_of_all_that_u85_has(
    seed: int, accelerator: str, dtype: DType
) -> None:
    require_equal(RandomGraphOfU85(seed, dtype).grow(12), dtype, accelerator)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize(
    "accelerator",
    ["ethos-u55-32", "ethos-u55-256", "ethos-u65-512", *ETHOS_U85],
)
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_networks(seed: int, accelerator: str, dtype: DType) -> None:
    require_equal(RandomGraph(seed, dtype).grow(9), dtype, accelerator)
