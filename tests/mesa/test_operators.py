"""Streams in the manner of Mesa: read, executed, exact, without hazards, such as Linux takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.analysis.checking.linux import linux_check
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .lowering import lowered
from .networks import CHAINS, ONE_OPERATOR, network

NPUS = ("ethos-u65-256", "ethos-u85-256")
INPUTS = 5


def given(artifact: Artifact, seed: int) -> list[Array]:
    """Inputs of a few inferences: numbers of the whole range, zeros, and both ends."""
    rng = np.random.default_rng(seed)
    made: list[Array] = []
    for info in artifact.inputs:
        ends = np.iinfo(info.dtype)
        array = rng.integers(ends.min, ends.max + 1, (INPUTS, *info.shape)).astype(info.dtype)
        array[1], array[2], array[3] = 0, ends.max, ends.min
        made.append(array)
    return made


@cache
def right(name: str) -> tuple[list[Array], list[Array]]:
    """Inputs, and what TFLite Micro's own kernels make of them."""
    source = mizzen.load(network(name))
    inputs = given(source, len(name))
    outputs = source.run(*inputs)
    return inputs, list(outputs) if isinstance(outputs, tuple) else [outputs]


@pytest.mark.parametrize("accelerator", NPUS)
@pytest.mark.parametrize("name", [*ONE_OPERATOR, *CHAINS])
def test_a_stream_is_judged_right(name: str, accelerator: str, tmp_path: Path) -> None:
    made = lowered(network(name), ACCELERATORS[accelerator].arch)
    path = tmp_path / "net.bin"
    path.write_bytes(made.file(made.stream.words()))
    artifact = mizzen.load(path, accelerator)
    assert [str(each) for each in check_artifact(artifact).findings] == []
    assert [str(each) for each in linux_check(artifact).findings] == []
    inputs, outputs = right(name)
    main = made.model.main
    assert [info.name for info in artifact.inputs] == [f"tensor_{index}" for index in main.inputs]
    flat = [array.view(np.uint8).reshape(INPUTS, -1) for array in inputs]
    came = artifact.run(*flat)
    results = came if isinstance(came, tuple) else (came,)
    for expected, array in zip(outputs, results, strict=True):
        assert np.array_equal(expected.view(np.uint8).reshape(INPUTS, -1), array)
