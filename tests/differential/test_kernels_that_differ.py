"""Operators of which TensorFlow Lite Micro and LiteRT give different numbers.

Our own code follows TensorFlow Lite Micro, Vela's follows LiteRT in these. Each row is one of the
page's on exceptions.
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

    title  of the row in the documentation
    most   by how many steps at most
    """

    title: str
    build: Callable[[], bytes]
    inputs: Sequence[Array]
    most: int


def _unary(kind: str, dtype: str, before: Q, after: Q, alpha: float | None = None) -> bytes:
    shape = SHORTS.shape if dtype == "int16" else BYTES.shape
    options = None if alpha is None else ("LeakyReluOptions", {"alpha": alpha})
    case = one("differing", kind, [shape], [shape], dtype, options, in_q=[before], out_q=after)
    return case.build()


APART = {
    "relu_int16": Disagreement(
        "RELU and LEAKY_RELU, int16, that rescale",
        lambda: _unary("RELU", "int16", Q(0.0006445), Q(0.0007439)),
        [SHORTS],
        1,
    ),
    "leaky_relu_int16": Disagreement(
        "RELU and LEAKY_RELU, int16, that rescale",
        lambda: _unary("LEAKY_RELU", "int16", Q(0.0006445), Q(0.0007439), 0.2),
        [SHORTS],
        1,
    ),
    "relu6_int8": Disagreement(
        "RELU6, int8 and int16, that rescale",
        lambda: _unary("RELU6", "int8", Q(0.05, 3), Q(0.03, -100)),
        [BYTES],
        255,
    ),
    "relu6_int16": Disagreement(
        "RELU6, int8 and int16, that rescale",
        lambda: _unary("RELU6", "int16", Q(0.0013), Q(0.0011)),
        [SHORTS],
        1 << 15,
    ),
    "logistic_int8": Disagreement(
        "LOGISTIC and TANH, int8, of inputs in steps of more than 2",
        lambda: _unary("LOGISTIC", "int8", Q(5.728, 97), Q(1 / 256, -128)),
        [BYTES],
        128,
    ),
    "tanh_int8": Disagreement(
        "LOGISTIC and TANH, int8, of inputs in steps of more than 2",
        lambda: _unary("TANH", "int8", Q(9.895, 44), Q(1 / 128)),
        [BYTES],
        128,
    ),
}
FULLY_CONNECTED = "FULLY_CONNECTED, int8 and int16"


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", APART)
def test_each_code_follows_its_kernels(name: str, accelerator: str) -> None:
    network = APART[name].build()
    inputs = [array[np.newaxis] for array in APART[name].inputs]
    (theirs,), (micro,) = litert(network, inputs), CpuKernels(network).run(inputs)
    np.testing.assert_array_equal(mizzen.compile(network, accelerator).run(*inputs), micro)
    vela = {"generator": "vela"}
    npu = mizzen.compile(network, accelerator, prove="off", target_options=vela).run(*inputs)
    np.testing.assert_array_equal(npu, theirs)
    apart = np.abs(micro.astype(int) - theirs.astype(int)).max()
    assert 0 < apart <= APART[name].most


@pytest.mark.parametrize("name", [name for name in APART if not name.startswith("tanh")])
def test_they_are_on_the_npu(name: str) -> None:
    artifact = mizzen.compile(APART[name].build(), "ethos-u85-256")
    assert artifact.report is not None
    assert [each.device for each in artifact.report.placements] == [Device.NPU]


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
    for title in {FULLY_CONNECTED, *(row.title for row in APART.values())}:
        assert f"\n| {title} |" in page, title
