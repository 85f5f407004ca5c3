"""Real networks, split at random by hand: every tensor is that of TFLite Micro's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.execution import InProcess, compare, execute
from mizzen.mesh.execution.tiles import dtypes_of
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import Network, network_of_tflite

NETWORKS = ["ad01_int8", "kws_ref_model", "person_detect", "pretrainedResnet_quant", "vww_96_int8"]


@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_of_a_network_split_at_random(
    name: str, models: Path, split_at_random: Callable[[Network, int], Mapping]
) -> None:
    content = (models / f"{name}.tflite").read_bytes()
    network = network_of_tflite(content, name)
    program = emit(split_at_random(network, 3))
    inputs = _inputs(network, 3)
    rows = compare(program, inputs, InProcess(2))
    assert [str(row) for row in rows if row.differing] == []
    assert len(rows) == len(network.tensors)


@pytest.mark.parametrize("name", ["kws_ref_model", "pretrainedResnet_quant"])
def test_outputs_are_those_of_the_kernels(
    name: str, models: Path, split_at_random: Callable[[Network, int], Mapping]
) -> None:
    kernels = pytest.importorskip("mizzen.cpu.tflm", reason="TFLite Micro's kernels")
    content = (models / f"{name}.tflite").read_bytes()
    network = network_of_tflite(content, name)
    inputs = _inputs(network, 4)
    (found,) = execute(emit(split_at_random(network, 8)), inputs).outputs
    (expected,) = kernels.CpuKernels(content).run([_as_file(array, content) for array in inputs])
    assert np.array_equal(found.reshape(expected.shape), expected)
    assert len(np.unique(expected)) > 2


def _inputs(network: Network, count: int) -> list[np.ndarray]:
    random, dtypes = np.random.default_rng(1), dtypes_of(network)
    return [
        random.integers(-128, 128, (count, *network.tensors[index].shape)).astype(dtypes[index])
        for index in network.inputs
    ]


def _as_file(array: np.ndarray, content: bytes) -> np.ndarray:
    """Return images in the shape that the file gives its input."""
    from mizzen.frontends.tflite import read

    main = read(content, "network").main
    (tensor,) = main.present(main.inputs)
    return array.reshape(len(array), *tensor.shape)
