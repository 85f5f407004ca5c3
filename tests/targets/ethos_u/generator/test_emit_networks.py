"""Real networks by every schedule: they compute what Vela's code does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.frontends.tflite.lower import lower as lower_network
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.emit.bytesets import ByteSet
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Schedule, Sequence
from mizzen.targets.ethos_u.generator.schedule import plain, schedule
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS, CORES, core_of
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from .chance_schedules import by_chance
from .program_judges import blockdeps, greatest_blockdeps, needless_waits

VELA = {"generator": "vela"}
QUICK = (
    ("kws_ref_model", "ethos-u55-128"),
    ("kws_ref_model", "ethos-u65-512"),
    ("micro_speech_quantized", "ethos-u55-64"),
    ("kws_ref_model", "ethos-u85-256"),
    ("pretrainedResnet_quant", "ethos-u85-2048"),
)


def program_of(path: Path, accelerator: str) -> Program | None:
    """Return Vela's program of a network; None if it is not the whole network."""
    steps = mizzen.compile(path, accelerator, prove="off", target_options=VELA).steps
    programs = [step.program for step in steps if isinstance(step, NpuStep)]
    return programs[0] if len(programs) == len(steps) == 1 else None


def sequence_of(path: Path, accelerator: str) -> Sequence | None:
    """Return a network by our rules; None if they do not take all of it."""
    lowered = lower_network(read_network(path.read_bytes(), path.name))
    graph = lowered.graph
    ends = (*graph.inputs, *graph.outputs)
    unsigned = [value for value in ends if lowered.is_unsigned(value)]
    return lower(graph, unsigned, ACCELERATORS[accelerator].arch).sequence


def results(program: Program, seed: int) -> list[npt.NDArray[Any]]:
    """Return the outputs for random inputs, as rows of elements."""
    rng = np.random.default_rng(seed)
    inputs: list[npt.NDArray[Any]] = []
    for row in program.inputs:
        kind = np.dtype(row.dtype.str)
        info = np.iinfo(row.dtype.name)
        inputs.append(rng.integers(info.min, info.max, (2, *row.shape), endpoint=True).astype(kind))
    return [row.reshape(2, -1) for row in Simulator(program).run(inputs, 2).outputs]


def require_same(made: Program, vela: Program) -> None:
    assert [row.render() for row in find_hazards(made).diagnostics] == []
    for one, other in zip(results(made, 1), results(vela, 1), strict=True):
        assert np.array_equal(one, other)


def schedules(sequence: Sequence, accelerator: str) -> list[Schedule]:
    configuration = resolve(accelerator)
    return [
        plain(sequence, configuration),
        schedule(sequence, configuration),
        by_chance(sequence, ACCELERATORS[accelerator], 1),
    ]


@pytest.mark.parametrize(("name", "accelerator"), QUICK)
def test_network(model_file: Callable[[str], Path], name: str, accelerator: str) -> None:
    path = model_file(f"{name}.tflite")
    program, sequence = program_of(path, accelerator), sequence_of(path, accelerator)
    assert program is not None
    assert sequence is not None
    for row in schedules(sequence, accelerator):
        require_same(emit(row, ACCELERATORS[accelerator]), program)


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", [*CORES, *ARRAYS])
def test_network_everywhere(network_file: Path, accelerator: str) -> None:
    """Networks on every machine; waits as few as the checker has it, overlap as much."""
    machine = ACCELERATORS[accelerator]
    program = program_of(network_file, accelerator)
    sequence = sequence_of(network_file, accelerator)
    if program is None or sequence is None:
        pytest.skip("the network is not on the NPU as a whole")
    for row in schedules(sequence, accelerator):
        made = emit(row, machine)
        require_same(made, program)
        assert needless_waits(made, machine) == []
        if core_of(machine).keeps_tables:
            assert blockdeps(made)[1:] == greatest_blockdeps(made, machine)[1:]


def test_bytes_of_nothing() -> None:
    """A block that lies in padding alone reads nothing."""
    marks = np.ones(4, np.bool_)
    assert ByteSet([]).within(0, 4, marks).size == 0
    assert not ByteSet([]).touches(ByteSet([(0, 4, ())]))
