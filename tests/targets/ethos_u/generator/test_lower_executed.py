"""What rules make of operators, as programs: exact in the simulator, and free of hazards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.conformance.oracles import litert
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import resolve

from .lowered_networks import Array, rules_for, stimuli
from .rule_networks import NETWORKS

INFERENCES = 6


def wanted(network: bytes, inputs: list[Array]) -> list[Array]:
    """Return what TFLite Micro's kernels give of a batch, or LiteRT's where it has none."""
    try:
        return CpuKernels(network).run(inputs)
    except MizzenError:
        return litert(network, inputs)


def require_exact(network: bytes, accelerator: str, limit: int | None = None) -> int:
    """Hold the rules' program of a network to the kernels; return how many operations it has."""
    rules = rules_for(network, "network.tflite")
    machine = ACCELERATORS[accelerator]
    program = emit(plain(rules.operations, resolve(accelerator)), machine)
    assert [row.render() for row in find_hazards(program).diagnostics] == []
    drawn = [stimuli(rules.model, seed, limit) for seed in range(INFERENCES)]
    inputs = [np.stack(rows) for rows in zip(*drawn, strict=True)]
    given = [
        row.reshape(INFERENCES, *edge.shape)
        for row, edge in zip(inputs, program.inputs, strict=True)
    ]
    simulated = Simulator(program).run(given, INFERENCES).outputs
    for one, other in zip(simulated, wanted(network, inputs), strict=True):
        assert np.array_equal(one.reshape(other.shape), other)
    return len(rules.operations.operations)


@pytest.mark.parametrize("name", NETWORKS)
def test_random_networks(name: str) -> None:
    build: Callable[[int], bytes] = NETWORKS[name]
    for seed in range(12):
        require_exact(build(seed), ("ethos-u55-128", "ethos-u65-256")[seed % 2])


@pytest.mark.sweep
@pytest.mark.parametrize("name", NETWORKS)
def test_many_random_networks(name: str) -> None:
    for seed in range(12, 200):
        require_exact(NETWORKS[name](seed), ("ethos-u55-64", "ethos-u65-512")[seed % 2])
