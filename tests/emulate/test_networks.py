"""A compiled network in firmware gives the bytes that its artifact gives, on every processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.emulate import Core, Options, emulate

from .compilers import GCC, need
from .firmware import BOARD, configured, network_firmware, shown_outputs

RUNS = 3


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_person_detection_is_the_artifacts(
    accelerator: str, core: Core, model_file: Callable[[str], Path], tmp_path: Path
) -> None:
    need(GCC)
    artifact = mizzen.compile(model_file("person_detect.tflite"), accelerator, prove="off")
    (info,) = artifact.inputs
    inputs = np.random.default_rng(7).integers(-128, 128, (RUNS, *info.shape), np.int8)
    folder = configured(tmp_path, accelerator=accelerator)
    firmware = network_firmware(folder, artifact, inputs)
    result = emulate(firmware, BOARD, accelerator, replace(Options(), core=core))
    assert result.ok, result.failures
    expected = artifact.run(inputs.reshape(RUNS, *info.shape[1:]))
    assert isinstance(expected, np.ndarray)
    found = shown_outputs(result.output, RUNS)
    assert np.array_equal(found, expected.reshape(RUNS, -1).view(np.uint8))
    assert result.invocation_count == RUNS
    assert len({row.cycles.total for row in result.invocations}) == 1
    assert result.cycles > 0
