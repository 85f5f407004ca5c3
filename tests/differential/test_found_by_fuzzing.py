"""What random networks found (`benchmarks/fuzz.py`): a small network for each class of mistake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report import Device
from mizzen.targets.ethos_u.legal.tflite_bounds import scaled_apart

Shape = Sequence[int]


class Net(NetworkBuilder):
    """A network of operators that are short to write; all of one type and quantisation."""

    def __init__(self, dtype: str = "int8") -> None:
        super().__init__("found")
        self.dtype = dtype
        self.made = 0

    def map(self, shape: Shape, scale: float = 0.05, zero: int = 7) -> int:
        self.made += 1
        zero = 0 if self.dtype == "int16" else zero
        return self.tensor(f"t{self.made}", shape, self.dtype, scale, zero)

    def integers(self, *values: int) -> int:
        self.made += 1
        return self.constant(f"c{self.made}", np.array(values, np.int32))

    def to(self, kind: str, shape: Shape, inputs: list[int], name: str = "",
           scale: float = 0.05, **fields: Any) -> int:  # fmt: skip
        """Add an operator, and return what it gives."""
        made = self.map(shape, scale)
        self.operator(kind, inputs, [made], (name, fields) if name else None)
        return made

    def reshaped(self, shape: Shape, index: int) -> int:
        return self.to("RESHAPE", shape, [index, self.integers(*shape)], "ReshapeOptions",
                       new_shape=np.array(shape, np.int32))  # fmt: skip


def any_inputs(artifact: Artifact, count: int = 16) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    limits = [np.iinfo(row.dtype) for row in artifact.inputs]
    return [
        rng.integers(limit.min, limit.max, (count, *row.shape), endpoint=True).astype(row.dtype)
        for row, limit in zip(artifact.inputs, limits, strict=True)
    ]


def off(data: bytes, artifact: Artifact, inputs: list[np.ndarray]) -> list[int]:
    """Return the largest difference of each output from TensorFlow Lite Micro's."""
    found = artifact.run(*inputs)
    every = found if isinstance(found, tuple) else (found,)
    return [
        int(np.abs(ours.astype(int) - theirs.reshape(ours.shape)).max())
        for ours, theirs in zip(every, CpuKernels(data).run(inputs), strict=True)
    ]


def gathered() -> bytes:
    """A RESHAPE beside a GATHER, which is on the CPU of Ethos-U55."""
    net = Net()
    x = net.map((3, 1, 1, 2))
    y = net.reshaped((6, 1), x)
    z = net.to("GATHER", (2, 1, 1, 2), [x, net.integers(1, 2)], "GatherOptions", axis=0)
    return net.finish([x], [y, z])


def summed() -> bytes:
    """Two views of one tensor, one of which is summed without keeping the axis."""
    net = Net()
    x = net.map((4, 21))
    y = net.to("EXPAND_DIMS", (1, 4, 21), [x, net.integers(0)], "ExpandDimsOptions")
    z = net.to("EXPAND_DIMS", (4, 21, 1), [x, net.integers(2)], "ExpandDimsOptions")
    total = net.to("SUM", (1, 4), [y, net.integers(2)], "ReducerOptions", keep_dims=False)
    return net.finish([x], [y, z, total])


def resized() -> bytes:
    """A TRANSPOSE that moves nothing beside a RESIZE that is on the CPU."""
    net = Net()
    x = net.map((1, 2, 1, 8))
    y = net.to("TRANSPOSE", (2, 1, 1, 8), [x, net.integers(1, 0, 2, 3)], "TransposeOptions")
    z = net.to("RESIZE_NEAREST_NEIGHBOR", (1, 11, 12, 8), [x, net.integers(11, 12)],
               "ResizeNearestNeighborOptions", half_pixel_centers=True)  # fmt: skip
    return net.finish([x], [y, z])


def multiplied() -> bytes:
    """A RESHAPE beside a BATCH_MATMUL: the compiler forgets to compute the RESHAPE."""
    net = Net()
    x, y = net.map((1, 1, 15, 16)), net.map((1, 1, 15, 16))
    view = net.reshaped((10, 3, 1, 8), y)
    product = net.to("BATCH_MATMUL", (1, 1, 15, 15), [x, y], "BatchMatMulOptions", 3.0, adj_y=True)
    return net.finish([x, y], [view, product])


def turned() -> bytes:
    """Two TRANSPOSEs, the first of which is an output, too: the compiler forgets to compute it."""
    net = Net("int16")
    x = net.map((1, 4, 12, 2))
    y = net.to("TRANSPOSE", (12, 4, 1, 2), [x, net.integers(2, 1, 0, 3)], "TransposeOptions")
    z = net.to("TRANSPOSE", (1, 12, 2, 4), [y, net.integers(2, 0, 3, 1)], "TransposeOptions")
    return net.finish([x], [y, z])


CONFUSED = {
    "gathered": (gathered, "ethos-u55-64", "RESHAPE"),
    "summed": (summed, "ethos-u85-1024", "EXPAND_DIMS"),
    "resized": (resized, "ethos-u55-256", "TRANSPOSE"),
    "multiplied": (multiplied, "ethos-u65-256", "RESHAPE"),
    "turned": (turned, "ethos-u85-512", "TRANSPOSE"),
}


@pytest.mark.parametrize("name", CONFUSED)
def test_tensors_that_the_compiler_confuses(name: str) -> None:
    build, accelerator, kind = CONFUSED[name]
    data = build()
    artifact = mizzen.compile(data, accelerator)
    assert not any(off(data, artifact, any_inputs(artifact)))
    assert artifact.report is not None
    (said, *_) = [
        row.reasons[0] for row in artifact.report.placements
        if row.kind == kind and row.device is Device.CPU
    ]  # fmt: skip
    assert said.rule == "other-tensor"


def test_tensors_are_the_right_ones_without_a_proof_too() -> None:
    data = gathered()
    artifact = mizzen.compile(data, "ethos-u55-64", prove="off", allow_inexact=True)
    assert not any(off(data, artifact, any_inputs(artifact)))


def one(kind: str, name: str = "", **fields: Any) -> Callable[[], bytes]:
    """Return the builder of a function of all numbers of 16 bits."""

    def build() -> bytes:
        net = Net("int16")
        x = net.map((1, 256, 256), 0.0006445)
        return net.finish([x], [net.to(kind, (1, 256, 256), [x], name, 0.0007439, **fields)])

    return build


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize(
    "build",
    [one("RELU"), one("LEAKY_RELU", "LeakyReluOptions", alpha=0.2)],
    ids=["RELU", "LEAKY_RELU"],
)
def test_int16_functions_are_rounded_once(build: Callable[[], bytes], accelerator: str) -> None:
    """The kernel rounds twice, the stream once: they differ where the first rounding gives a tie.

    Whether the inputs of a proof meet one of these numbers is chance; that they may is known.
    """
    data = build()
    artifact = mizzen.compile(data, accelerator)
    every = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, 1, 256, 256)
    (found,), (kernel,) = [artifact.run(every)], CpuKernels(data).run([every])
    assert isinstance(found, np.ndarray)
    difference = np.abs(found.astype(int) - kernel.reshape(found.shape))
    assert difference.max() == 1
    assert difference.mean() < 1e-3
    assert artifact.report is not None
    assert [row.device for row in artifact.report.placements] == [Device.NPU]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_matrix_products_are_rounded_twice(accelerator: str) -> None:
    """-3007 times the scale is -210.4375: in steps of an eighth that is nearly a tie, then one."""
    net = Net()
    a, b = (net.map((1, 1, 4), 0.04610852524638176) for _ in range(2))
    y = net.map((1, 1, 1), 0.030378950759768486, 127)
    net.operator("BATCH_MATMUL", [a, b], [y], ("BatchMatMulOptions", {"adj_y": True}))
    data = net.finish([a, b], [y])
    artifact = mizzen.compile(data, accelerator)
    rows = [np.full((1, 1, 1, 4), 7, np.int8) for _ in range(2)]
    for row, value in zip(rows, (-31, 97), strict=True):
        row[..., 0] += value
    assert off(data, artifact, rows) == [1]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_sums_next_to_a_tie_are_scaled_in_single_precision(accelerator: str) -> None:
    """780 times the scale is 5.496, and 703.49999 or 703.50001 of the first rounding's steps."""
    scales = (0.04663386195898056, 0.008838835172355175, 0.05849744379520416)
    net = Net()
    x, y = net.map((1, 8), scales[0], -30), net.map((1, 4), scales[2], -30)
    weights = net.constant("w", np.full((4, 8), 10, np.int8), scales[1])
    bias = net.constant("b", np.zeros(4, np.int32), scales[0] * scales[1])
    net.operator("FULLY_CONNECTED", [x, weights, bias], [y], ("FullyConnectedOptions", {}))
    data = net.finish([x], [y])
    artifact = mizzen.compile(data, accelerator)
    row = np.full((1, 1, 8), -30, np.int8)
    row[..., 0] += 78
    assert off(data, artifact, [row]) == [1]
    assert scaled_apart(scales[0], scales[1:2], scales[2])
    assert not scaled_apart(0.5, [0.25], scales[2])
