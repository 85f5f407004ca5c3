"""Elements that are NPUs execute command streams, and give the network's integers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mizzen.artifact.loading import artifact_of
from mizzen.mesh.emission import emit
from mizzen.mesh.execution import compare, execute
from mizzen.mesh.machine import find_machine
from mizzen.mesh.mapping import MappingOptions, map_network
from mizzen.mesh.network import Network, network_of_tflite
from mizzen.mesh.npu import compile_tiles
from mizzen.mesh.program import Kernel, MeshProgram, check, parse_program, program_bytes

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"
IMAGES = 3


@pytest.fixture(scope="module")
def network() -> Network:
    return network_of_tflite(DIGITS.read_bytes(), DIGITS.name)


@pytest.fixture(scope="module")
def program(network: Network) -> MeshProgram:
    machine = find_machine("ethos-u55-16")
    return compile_tiles(emit(map_network(network, machine, MappingOptions(replicas=1))))


@pytest.fixture(scope="module")
def images(network: Network) -> list[np.ndarray]:
    shape = network.tensors[network.inputs[0]].shape
    return [np.random.default_rng(5).integers(-128, 128, (IMAGES, *shape)).astype(np.int8)]


def test_tiles_are_streams_for_the_elements_npu(program: MeshProgram) -> None:
    assert len(program.streams) >= 5
    for (npu, _), data in program.streams.items():
        assert npu == "ethos-u55-128"
        assert artifact_of(data, "tile").accelerator == npu
    assert not check(program)


def test_streams_give_the_integers_of_the_whole_network(
    program: MeshProgram, images: list[np.ndarray]
) -> None:
    assert not [row for row in compare(program, images) if row.differing]


def test_streams_are_what_is_executed(program: MeshProgram, images: list[np.ndarray]) -> None:
    """Streams of two tiles of one form, exchanged, give something else."""
    by_form: dict[tuple[object, ...], list[tuple[str, Kernel]]] = {}
    for key, data in program.streams.items():
        artifact = artifact_of(data, "tile")
        form = tuple(row.shape for row in (*artifact.inputs, *artifact.outputs))
        by_form.setdefault(form, []).append(key)
    first, second = next(keys for keys in by_form.values() if len(keys) > 1)[:2]
    streams = program.streams
    exchanged = {**streams, first: streams[second], second: streams[first]}
    found = compare(replace(program, streams=exchanged), images)
    assert [row for row in found if row.differing]


def test_a_file_keeps_the_streams(program: MeshProgram, images: list[np.ndarray]) -> None:
    read = parse_program(program_bytes(program), "digits.mesh")
    assert read.streams == program.streams
    (outputs,), (expected,) = execute(read, images).outputs, execute(program, images).outputs
    assert np.array_equal(outputs, expected)


def test_other_elements_have_no_streams(network: Network) -> None:
    program = emit(map_network(network, find_machine("grid4x4")))
    assert not compile_tiles(program).streams
