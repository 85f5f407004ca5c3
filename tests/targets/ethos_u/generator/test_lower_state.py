"""Networks that keep state, whole in one sequence: step by step what the kernels give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.cpu.tflm import CpuKernels
from mizzen.frontends.tflite import Tensor, macs, read
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.lower import Lowered, lower, lower_in_runs
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from ....compiler.ethos_u.test_variables import ORDERS  # noqa: TID252 tests are no package with a name
from .recurrent_networks import lstm, started
from .streaming_networks import random_streaming, streaming_network

STEPS = 12


def program_of(lowered: Lowered, accelerator: str) -> Program:
    """Return a program of a plain schedule, which has no hazards."""
    assert lowered.sequence is not None, [row.reason for row in lowered.refusals]
    configuration = resolve(accelerator)
    program = emit(plain(lowered.sequence, configuration), configuration.accelerator)
    assert [row.render() for row in find_hazards(program).diagnostics] == []
    return program


def require_same_steps(data: bytes, accelerator: str) -> None:
    """Hold a network to TFLite Micro's kernels over many inferences."""
    model = read(data, "network.tflite")
    lowered = lower(lower_with_state(model).graph)
    program = program_of(lowered, accelerator)
    simulator = Simulator(program)
    kernels = CpuKernels(data).session()
    states: list[np.ndarray] = []
    for row in lowered.states:
        assert row.initial is not None
        states.append(row.initial[np.newaxis])
    draw = np.random.default_rng(3)
    for _ in range(STEPS):
        inputs = [
            _drawn(draw, model.main.tensors[index]).reshape(1, *edge.shape)
            for index, edge in zip(model.main.inputs, program.inputs, strict=False)
        ]
        outcome = simulator.run([*inputs, *states], 1)
        states = list(outcome.variables)
        wanted = kernels.run([
            row.reshape(1, *model.main.tensors[index].shape)
            for row, index in zip(inputs, model.main.inputs, strict=True)
        ])  # fmt: skip
        for one, other in zip(outcome.outputs, wanted, strict=True):
            assert np.array_equal(one.ravel(), other.ravel())


def _drawn(draw: np.random.Generator, tensor: Tensor) -> np.ndarray:
    assert tensor.dtype is not None
    info = np.iinfo(tensor.dtype.str)
    return draw.integers(info.min, info.max, tensor.shape, endpoint=True).astype(tensor.dtype)


@pytest.mark.parametrize("seed", range(9))
def test_variables_start_with_any_numbers(seed: int) -> None:
    """A runtime sets all variable tensors to the number for zero."""
    data = started(seed)
    for row in lower(lower_with_state(read(data, "network.tflite")).graph).states:
        zero = 0 if row.type.quantization is None else row.type.quantization.zero_point
        assert row.initial is not None
        assert (row.initial == zero).all()
    require_same_steps(data, ("ethos-u55-128", "ethos-u65-256")[seed % 2])


@pytest.mark.parametrize("seed", range(12))
def test_an_lstm_is_one_sequence(seed: int) -> None:
    require_same_steps(lstm(seed), ("ethos-u55-128", "ethos-u65-256", "ethos-u55-32")[seed % 3])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_a_streaming_network_is_one_sequence(seed: int, accelerator: str) -> None:
    require_same_steps(streaming_network(random_streaming(seed)), accelerator)


def test_all_multiplications_of_streaming_networks_are_on_the_npu() -> None:
    """At least 95 % must be; our rules leave nothing to the CPU."""
    for seed in range(20):
        model = read(streaming_network(random_streaming(seed)), "streaming.tflite")
        found = lower_in_runs(lower_with_state(model).graph)
        assert found.refusals == ()
        (run,) = found.runs
        groups = {row.group for row in run.operations}
        rows = model.main.operators
        on_npu = sum(macs(model.main, row) or 0 for row in rows if row.index in groups)
        assert on_npu == sum(macs(model.main, row) or 0 for row in rows) > 0


@pytest.mark.parametrize("build", ORDERS)
def test_variables_are_read_and_assigned_in_the_network_s_order(
    build: Callable[[], bytes],
) -> None:
    require_same_steps(build(), "ethos-u55-128")
