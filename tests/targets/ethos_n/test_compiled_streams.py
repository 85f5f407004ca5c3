"""Arm's own compiled streams: executed, they give what the integer reference gives."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.targets.ethos_n.config import capabilities_of, find_variant
from mizzen.targets.ethos_n.network import Array, Network
from mizzen.targets.ethos_n.program import read_program
from mizzen.targets.ethos_n.reference import evaluate
from mizzen.targets.ethos_n.sim import Simulator

from .golden import Compiled, compiled_networks, needs_golden

BATCH = 3
NETWORKS = compiled_networks()
MOBILENETS = [row for row in NETWORKS if row.name.startswith("mobilenet")]


def simulator_of(compiled: Compiled) -> Simulator:
    variant = find_variant(f"Ethos-N78_{compiled.variant}")
    return Simulator(read_program(compiled.encn, capabilities_of(variant)))


def inputs_of(network: Network, batch: int, seed: int) -> list[Array]:
    """Return numbers of the whole range of each input's type."""
    random = np.random.default_rng(seed)
    return [
        random.integers(0, 256, (batch, *row.info.shape[1:]), np.uint8).view(
            row.info.data_type.dtype
        )
        for row in network.inputs
    ]


def shaped(output: npt.NDArray[np.uint8], like: Array) -> Array:
    return output.view(like.dtype).reshape(like.shape)


@needs_golden
@pytest.mark.parametrize("compiled", NETWORKS, ids=str)
def test_arms_streams_equal_the_reference(compiled: Compiled) -> None:
    network = compiled.network
    inputs = inputs_of(network, BATCH, seed=len(compiled.name))
    outcome = simulator_of(compiled).run(inputs, BATCH)
    for output, expected in zip(outcome.outputs, evaluate(network, inputs), strict=True):
        np.testing.assert_array_equal(shaped(output, expected), expected)
        assert len(np.unique(expected)) > 20


@needs_golden
@pytest.mark.parametrize("compiled", MOBILENETS, ids=str)
def test_a_batch_is_its_images(compiled: Compiled) -> None:
    """Also beyond what is executed at once; planned once, run many times."""
    simulator = simulator_of(compiled)
    inputs = inputs_of(compiled.network, 70, seed=5)
    whole = simulator.run(inputs, 70).outputs[0]
    for image in (0, 33, 69):
        alone = simulator.run([array[image : image + 1] for array in inputs], 1).outputs[0]
        np.testing.assert_array_equal(alone[0], whole[image])


@needs_golden
def test_mobilenet_takes_well_under_a_second(slowness: float) -> None:
    simulator = simulator_of(MOBILENETS[0])
    inputs = inputs_of(MOBILENETS[0].network, 4, seed=6)
    start = time.process_time()
    simulator.run(inputs, 4)
    assert (time.process_time() - start) / 4 < 0.5 * slowness
