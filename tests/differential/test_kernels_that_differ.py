"""Operators of which TensorFlow Lite Micro and LiteRT give different numbers: whom the NPU follows.

Each row is one of the page's on exceptions, and says what the default is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.conformance.networks import Q, dense, one
from mizzen.conformance.oracles import litert
from mizzen.cpu.tflm import CpuKernels
from mizzen.partition import Device

Array = npt.NDArray[Any]
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
SHORTS = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, 1, 256, 256)
BYTES = np.arange(-(1 << 7), 1 << 7).astype(np.int8).reshape(1, 1, 16, 16)


@dataclass(frozen=True)
class Disagreement:
    """Kernels that differ.

    title   of the row in the documentation
    most    by how many steps at most
    device  where Mizzen computes it by default
    """

    title: str
    build: Callable[[], bytes]
    inputs: Sequence[Array]
    most: int
    device: Device


def _unary(kind: str, dtype: str, before: Q, after: Q, alpha: float | None = None) -> bytes:
    shape = SHORTS.shape if dtype == "int16" else BYTES.shape
    options = None if alpha is None else ("LeakyReluOptions", {"alpha": alpha})
    case = one("differing", kind, [shape], [shape], dtype, options, in_q=[before], out_q=after)
    return case.build()


FOLLOW_LITERT = {
    "relu_int16": Disagreement(
        "RELU and LEAKY_RELU, int16, that rescale",
        lambda: _unary("RELU", "int16", Q(0.0006445), Q(0.0007439)),
        [SHORTS],
        1,
        Device.NPU,
    ),
    "leaky_relu_int16": Disagreement(
        "RELU and LEAKY_RELU, int16, that rescale",
        lambda: _unary("LEAKY_RELU", "int16", Q(0.0006445), Q(0.0007439), 0.2),
        [SHORTS],
        1,
        Device.NPU,
    ),
    "relu6_int8": Disagreement(
        "RELU6, int8 and int16, that rescale",
        lambda: _unary("RELU6", "int8", Q(0.05, 3), Q(0.03, -100)),
        [BYTES],
        255,
        Device.CPU,
    ),
    "relu6_int16": Disagreement(
        "RELU6, int8 and int16, that rescale",
        lambda: _unary("RELU6", "int16", Q(0.0013), Q(0.0011)),
        [SHORTS],
        1 << 15,
        Device.CPU,
    ),
    "logistic_int8": Disagreement(
        "LOGISTIC and TANH, int8, of inputs in steps of more than 2",
        lambda: _unary("LOGISTIC", "int8", Q(5.728, 97), Q(1 / 256, -128)),
        [BYTES],
        128,
        Device.CPU,
    ),
    "tanh_int8": Disagreement(
        "LOGISTIC and TANH, int8, of inputs in steps of more than 2",
        lambda: _unary("TANH", "int8", Q(9.895, 44), Q(1 / 128)),
        [BYTES],
        128,
        Device.CPU,
    ),
}
FULLY_CONNECTED = "FULLY_CONNECTED, int8 and int16"


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", FOLLOW_LITERT)
def test_the_npu_follows_litert(name: str, accelerator: str) -> None:
    row = FOLLOW_LITERT[name]
    network = row.build()
    inputs = [array[np.newaxis] for array in row.inputs]
    (theirs,), (micro,) = litert(network, inputs), CpuKernels(network).run(inputs)
    npu = mizzen.compile(network, accelerator, prove="off", allow_inexact=True).run(*inputs)
    np.testing.assert_array_equal(npu, theirs)
    apart = np.abs(micro.astype(int) - theirs.astype(int)).max()
    assert 0 < apart <= row.most


@pytest.mark.parametrize("name", FOLLOW_LITERT)
def test_where_it_is_computed(name: str) -> None:
    """What differs by a step stays, within its bound; else the CPU gives what its kernel gives."""
    row = FOLLOW_LITERT[name]
    network = row.build()
    artifact = mizzen.compile(network, "ethos-u55-128")
    assert artifact.report is not None
    assert [each.device for each in artifact.report.placements] == [row.device]
    if row.device is Device.CPU:
        inputs = [array[np.newaxis] for array in row.inputs]
        np.testing.assert_array_equal(artifact.run(*inputs), CpuKernels(network).run(inputs)[0])


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize(
    ("dtype", "shape"), [("int8", (16, 33, 8)), ("int16", (4, 20, 12))], ids=["int8", "int16"]
)
def test_the_npu_follows_tensorflow_lite_micro(
    dtype: str, shape: tuple[int, int, int], accelerator: str
) -> None:
    network = dense(*shape, dtype).build()
    limits = np.iinfo(dtype)
    values = np.random.default_rng(3).integers(
        limits.min, limits.max, (64, *shape[:2]), endpoint=True
    )
    inputs = [values.astype(dtype)]
    (theirs,), (micro,) = litert(network, inputs), CpuKernels(network).run(inputs)
    np.testing.assert_array_equal(mizzen.compile(network, accelerator).run(*inputs), micro)
    assert np.abs(micro.astype(int) - theirs.astype(int)).max() == 1


def test_the_page_has_every_row(repository: Path) -> None:
    page = (repository / "docs" / "explanation" / "exceptions.md").read_text()
    for title in {FULLY_CONNECTED, *(row.title for row in FOLLOW_LITERT.values())}:
        assert f"\n| {title} |" in page, title
