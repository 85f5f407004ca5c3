"""Real networks, mapped onto machines by the search: sound programs, every tensor exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.execution import Engine, InProcess, OnRay, Processes, compare
from mizzen.mesh.machine import find_machine
from mizzen.mesh.mapping import map_network
from mizzen.mesh.network import network_of_tflite
from mizzen.mesh.program import check, parse_program, program_bytes

NETWORKS = ["ad01_int8", "kws_ref_model", "pretrainedResnet_quant"]
MACHINES = ["grid4x4", "hetero", "one", "simba36", "spinnaker2-1"]
ENGINES: list[Engine] = [InProcess(), Processes(2), OnRay(2)]


def differences(models: Path, name: str, machine: str, engine: Engine) -> list[str]:
    """Return what is found in a program, and the tensors that differ."""
    network = network_of_tflite((models / f"{name}.tflite").read_bytes(), name)
    made = emit(map_network(network, find_machine(machine)))
    program = parse_program(program_bytes(made), f"{name}.mesh")
    count = min(2 * program.replicas, 20) + 1
    given: list[Any] = [
        np.random.default_rng(1).integers(-128, 128, (count, *network.tensors[index].shape))
        for index in network.inputs
    ]
    rows = compare(program, [array.astype(np.int8) for array in given], engine)
    assert len(rows) == len(network.tensors)
    return [*map(str, check(program)), *(str(row) for row in rows if row.differing)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", NETWORKS)
def test_in_one_process(name: str, machine: str, models: Path) -> None:
    assert differences(models, name, machine, InProcess()) == []


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ENGINES, ids=["in-process", "processes", "ray"])
@pytest.mark.parametrize("machine", [*MACHINES, "spinnaker2-48"])
@pytest.mark.parametrize("name", [*NETWORKS, "vww_96_int8", "person_detect"])
def test_on_every_engine(name: str, machine: str, engine: Engine, models: Path) -> None:
    if name in ("vww_96_int8", "person_detect") and machine == "one":
        pytest.skip("the network does not fit one element")
    if isinstance(engine, OnRay):
        pytest.importorskip("ray", reason="Ray is not installed")
    assert differences(models, name, machine, engine) == []
