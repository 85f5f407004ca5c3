"""Networks that keep variables are one NPU operator, which keeps them in its own memory."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.cpu.tflm import CpuKernels
from mizzen.report import Device

from ...targets.ethos_u.generator.streaming_networks import (  # noqa: TID252 tests are no package with a name
    random_streaming,
    streaming_network,
)
from .networks import report_of


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_a_streaming_network_is_one_operator_and_exact(accelerator: str) -> None:
    data = streaming_network(random_streaming(1))
    artifact = mizzen.compile(data, accelerator)
    assert [step.on_npu for step in artifact.steps] == [True]
    placements = report_of(artifact).placements
    assert {each.device for each in placements} == {Device.NPU}  # handles of variables too
    assert sum(each.macs for each in placements) > 0
    session, kernels = artifact.session(), CpuKernels(data).session()
    draw = np.random.default_rng(8)
    (info,) = artifact.inputs
    for _ in range(20):
        x = draw.integers(-128, 128, (1, *info.shape)).astype(np.int8)
        (wanted,) = kernels.run([x])
        assert np.array_equal(np.asarray(session.run(x[0])).ravel(), wanted.ravel())
