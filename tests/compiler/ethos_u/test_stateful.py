"""Networks that keep variables, compiled to one NPU operator where our code is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.compiler.ethos_u.stateful import compiled_with_state
from mizzen.compiler.ethos_u.tflite import compile_network
from mizzen.compiler.proof.options import DEFAULT
from mizzen.cpu.tflm import CpuKernels
from mizzen.frontends.tflite import read
from mizzen.report import Device
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator
from mizzen.targets.ethos_u.machine.system_config import resolve

from ...targets.ethos_u.generator.streaming_networks import (  # noqa: TID252 tests are no package with a name
    random_streaming,
    streaming_network,
)
from .test_variables import delayed


def own(accelerator: str) -> EthosUConfiguration:
    return replace(resolve(accelerator), generator=Generator.OWN)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_a_streaming_network_is_one_operator_and_exact(accelerator: str) -> None:
    data = streaming_network(random_streaming(1))
    model = read(data, "streaming.tflite")
    artifact = compile_network(model, data, own(accelerator), DEFAULT, None)
    assert [step.on_npu for step in artifact.steps] == [True]
    report = artifact.report
    assert report is not None
    rows = report.placements
    on_npu = sum(row.macs for row in rows if row.device is Device.NPU)
    assert on_npu >= 0.95 * sum(row.macs for row in rows) > 0
    session, kernels = artifact.session(), CpuKernels(data).session()
    draw = np.random.default_rng(8)
    (info,) = artifact.inputs
    for _ in range(20):
        x = draw.integers(-128, 128, (1, *info.shape)).astype(np.int8)
        (wanted,) = kernels.run([x])
        assert np.array_equal(np.asarray(session.run(x[0])).ravel(), wanted.ravel())


def test_variables_that_start_with_other_numbers_than_zero_are_the_npu_s_too() -> None:
    """A runtime sets a variable tensor to the number for zero, and `delayed` starts with others."""
    data = delayed()
    model = read(data, "delayed.tflite")
    found = compiled_with_state(model, data, own("ethos-u55-128"), DEFAULT)
    assert found is not None
    assert found.proof is not None
    assert found.proof.equal == 1
