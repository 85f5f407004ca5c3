"""What random networks found (`benchmarks/fuzz.py`): Vela gets it wrong, our own code right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.partition import Device

Shape = Sequence[int]

U55, U85 = "ethos-u55-128", "ethos-u85-256"


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


def averaged() -> bytes:
    """A RESHAPE beside a MEAN that is on the CPU, whose result a GATHER takes by another name."""
    net = Net()
    x = net.map((1, 3, 2, 9))
    y = net.reshaped((1, 27, 1, 2), x)
    mean = net.to("MEAN", (3, 2), [x, net.integers(0, 3)], "ReducerOptions", keep_dims=False)
    z = net.to("GATHER", (4, 2), [mean, net.integers(1, 2, 0, 1)], "GatherOptions", axis=0)
    return net.finish([x], [y, z])


CONFUSED = (averaged, gathered, summed, resized, multiplied, turned)
"""Vela gives operators on the CPU another tensor, or forgets to compute one."""


def one(kind: str, name: str = "", **fields: Any) -> Callable[[], bytes]:
    """Return the builder of a function of all numbers of 16 bits."""

    def build() -> bytes:
        net = Net("int16")
        x = net.map((1, 256, 256), 0.0006445)
        return net.finish([x], [net.to(kind, (1, 256, 256), [x], name, 0.0007439, **fields)])

    return build


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_matrix_products_are_rounded_as_the_kernel_does(accelerator: str) -> None:
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
    assert off(data, artifact, rows) == [0]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_sums_next_to_a_tie_are_scaled_in_double_precision(accelerator: str) -> None:
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
    assert off(data, artifact, [row]) == [0]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_sums_of_shorts_next_to_a_tie_are_scaled_in_double_precision(accelerator: str) -> None:
    """Results of 16 bits have 256 times the steps, and so as many ties."""
    scales = (0.00781602319329977, 0.007869444787502289, 0.03732997551560402)
    rng = np.random.default_rng(0)
    net = Net("int16")
    x, y = net.map((1, 32), scales[0]), net.map((1, 16), scales[2])
    weights = net.constant("w", rng.integers(-127, 128, (16, 32)).astype(np.int8), scales[1])
    bias = net.constant("b", np.zeros(16, np.int32), scales[0] * scales[1])
    net.operator("FULLY_CONNECTED", [x, weights, bias], [y], ("FullyConnectedOptions", {}))
    data = net.finish([x], [y])
    artifact = mizzen.compile(data, accelerator)
    rows = rng.integers(-(1 << 15), 1 << 15, (512, 1, 32)).astype(np.int16)
    assert off(data, artifact, [rows]) == [0]


def matmul_beside_an_output() -> bytes:
    """A tensor that is an output and a transposed factor, made by what the CPU computes."""
    net = Net()
    x = net.map((7, 7, 5))
    y = net.to("SUB", (7, 7, 5), [x, x], "SubOptions", 0.07)
    product = net.to("BATCH_MATMUL", (7, 7, 7), [x, y], "BatchMatMulOptions", 0.9, adj_y=True)
    return net.finish([x], [product, y])


def part_of(net: Net, kind: str, index: int) -> tuple[int, list[int]]:
    """Return the second half of the rows of a map, or every second row; and other outputs."""
    half = (1, 4, 8, 8)
    if kind == "SLICE":
        inputs = [index, net.integers(0, 4, 0, 0), net.integers(*half)]
        return net.to(kind, half, inputs, "SliceOptions"), []
    if kind == "STRIDED_SLICE":
        places = ((0, 1, 0, 0), (1, 8, 8, 8), (1, 2, 1, 1))
        inputs = [index, *(net.integers(*row) for row in places)]
        return net.to(kind, half, inputs, "StridedSliceOptions"), []
    axis = net.constant("axis", np.array(1, np.int32))
    parts = [net.map(half), net.map(half)]
    net.operator("SPLIT", [axis, index], parts, ("SplitOptions", {"num_splits": 2}))
    return parts[1], parts[:1]


def computed(net: Net, kind: str, index: int, height: int) -> tuple[int, tuple[int, ...]]:
    """Add an operator on a map of `height` x 8 x 8; return what it gives, and its shape."""
    rng = np.random.default_rng(0)
    if kind == "TRANSPOSE_CONV":
        shape = (1, 2 * height, 16, 5)
        weights = net.constant("w", rng.integers(-127, 128, (5, 3, 3, 8)).astype(np.int8), 0.005)
        inputs = [net.integers(*shape), weights, index]
        fields = {"stride_h": 2, "stride_w": 2}
        return net.to(kind, shape, inputs, "TransposeConvOptions", **fields), shape
    if kind == "DEPTHWISE_CONV_2D":
        shape = (1, height, 8, 16)
        values = rng.integers(-127, 128, (1, 3, 3, 16)).astype(np.int8)
        bias = net.constant("b", np.zeros(16, np.int32), 0.0005)
        inputs = [index, net.constant("w", values, 0.01, axis=3), bias]
        fields = {"stride_h": 1, "stride_w": 1, "depth_multiplier": 2}
        return net.to(kind, shape, inputs, "DepthwiseConv2DOptions", **fields), shape
    if kind == "RESIZE_BILINEAR":
        shape = (1, 2 * height, 16, 8)
        inputs = [index, net.integers(*shape[1:3])]
        fields = {"half_pixel_centers": True}
        return net.to(kind, shape, inputs, "ResizeBilinearOptions", **fields), shape
    if kind == "SUM":
        shape = (1, height, 8, 1)
        inputs = [index, net.integers(3)]
        return net.to(kind, shape, inputs, "ReducerOptions", keep_dims=True), shape
    shape = (1, height, 8, 8)
    if kind == "MUL":
        constant = net.constant("c", rng.integers(-128, 128, shape).astype(np.int8), 0.03, 1)
        return net.to(kind, shape, [index, constant], "MulOptions"), shape
    fields = {"stride_h": 1, "stride_w": 1, "filter_height": 3, "filter_width": 3}
    return net.to("MAX_POOL_2D", shape, [index], "Pool2DOptions", **fields), shape


MISPLACED = [
    ("SLICE", "TRANSPOSE_CONV"),
    ("SLICE", "SUM"),
    ("SLICE", "DEPTHWISE_CONV_2D"),
    ("SLICE", "MAX_POOL_2D"),
    ("SPLIT", "DEPTHWISE_CONV_2D"),
    ("SPLIT", "TRANSPOSE_CONV"),
    ("STRIDED_SLICE", "MAX_POOL_2D"),
    ("STRIDED_SLICE", "MUL"),
    ("STRIDED_SLICE", "SUM"),
    ("CONCATENATION", "DEPTHWISE_CONV_2D"),
    ("CONCATENATION", "RESIZE_BILINEAR"),
    ("CONCATENATION", "TRANSPOSE_CONV"),
]
"""What makes a part or joins parts, and the operator beside which Vela misplaces them."""


def with_a_part(mover: str, kind: str) -> bytes:
    """Return a network of what makes a part, or joins parts, and an operator beside it."""
    net = Net()
    x = net.map((1, 8, 8, 8))
    if mover == "CONCATENATION":
        made, shape = computed(net, kind, x, 8)
        other, joined = net.map(shape), (1, 2 * shape[1], *shape[2:])
        y = net.to(mover, joined, [other, made], "ConcatenationOptions", axis=1)
        return net.finish([x, other], [y])
    part, rest = part_of(net, mover, x)
    return net.finish([x], [computed(net, kind, part, 4)[0], *rest])


def clamped(dtype: str, scale: float, zero: int) -> Callable[[], bytes]:
    def build() -> bytes:
        net = Net(dtype)
        x = net.map((1, 4, 4, 3), scale, zero)
        return net.finish([x], [net.to("RELU6", (1, 4, 4, 3), [x], "", scale * 0.7)])

    return build


def mirrored(axis: int) -> Callable[[], bytes]:
    def build() -> bytes:
        net = Net()
        x = net.map((2, 3, 5, 4))
        sides = np.array([[int(row == axis)] * 2 for row in range(4)], np.int32)
        shape = [size + 2 * (row == axis) for row, size in enumerate((2, 3, 5, 4))]
        inputs = [x, net.constant("sides", sides)]
        return net.finish([x], [net.to("MIRROR_PAD", shape, inputs, "MirrorPadOptions", mode=1)])

    return build


def large(dtype: str, scale: float) -> Callable[[], bytes]:
    """Sums that leave 32 bits once the kernel has scaled them; it wraps around then."""

    def build() -> bytes:
        net = Net(dtype)
        x = net.map((1, 8), 0.0006, 0)
        wide = np.int64 if dtype == "int16" else np.int32
        weights = net.constant("w", np.full((4, 8), 127, np.int8), 0.007)
        bias = net.constant("b", np.zeros(4, wide), 0.0006 * 0.007)
        y = net.to("FULLY_CONNECTED", (1, 4), [x, weights, bias], "FullyConnectedOptions", scale)
        return net.finish([x], [y])

    return build


def product() -> bytes:
    net = Net("int16")
    x, y = net.map((1, 64), 0.0004), net.map((1, 64), 0.0004)
    return net.finish([x, y], [net.to("MUL", (1, 64), [x, y], "MulOptions", 4e-8)])


def matrices() -> bytes:
    """Products of two computed matrices that leave 32 bits once they are scaled."""
    net = Net("int16")
    x = net.map((1, 2, 4), 0.006)
    y = net.to("BATCH_MATMUL", (1, 2, 2), [x, x], "BatchMatMulOptions", 2e-8, adj_y=True)
    return net.finish([x], [y])


OTHERWISE = {
    "RELU6": clamped("int8", 0.09, 7),
    "RELU6 int16": clamped("int16", 0.0003, 0),
    "RELU": one("RELU"),
    "LEAKY_RELU": one("LEAKY_RELU", "LeakyReluOptions", alpha=0.2),
    "MIRROR_PAD of a batch": mirrored(0),
    "MIRROR_PAD of rows": mirrored(1),
    "MIRROR_PAD of channels": mirrored(3),
    "int16 sums": large("int16", 3.6e-8),
    "int16 sums of a usual scale": large("int16", 1e-4),
    "int8 sums": large("int8", 1e-10),
    "int16 products": product,
    "int16 products of matrices": matrices,
}
"""Vela computes them in another way than the kernels."""


def broadcast_factor() -> bytes:
    net = Net()
    x, y = net.map((7, 1, 5)), net.map((1, 7, 5))
    total = net.to("ADD", (7, 7, 5), [x, y], "AddOptions", 0.1)
    product = net.to("BATCH_MATMUL", (7, 7, 1), [total, x], "BatchMatMulOptions", 0.5, adj_y=True)
    return net.finish([x, y], [product])


NETWORKS: dict[str, Callable[[], bytes]] = {
    **{build.__name__: build for build in (*CONFUSED, matmul_beside_an_output, broadcast_factor)},
    **{f"{mover}-{kind}": partial(with_a_part, mover, kind) for mover, kind in MISPLACED},
    **OTHERWISE,
}


@pytest.mark.parametrize("accelerator", [U55, "ethos-u65-256", U85])
@pytest.mark.parametrize("name", NETWORKS)
def test_our_code_is_exact(name: str, accelerator: str) -> None:
    data = NETWORKS[name]()
    artifact = mizzen.compile(data, accelerator)
    assert not any(off(data, artifact, any_inputs(artifact)))


def least_of_a_part() -> bytes:
    """A SLICE that is written with the MINIMUM of it and a constant, which few elements reach."""
    net = Net()
    x = net.map((8, 2), 0.07, -128)
    part = net.to("SLICE", (5, 1), [x, net.integers(0, 1), net.integers(5, 1)], "SliceOptions")
    least = net.constant("least", np.array([[110]], np.int8), 0.05, 7)
    return net.finish([x], [net.to("MINIMUM", (5, 1), [part, least])])


def softmax_of_a_channel() -> bytes:
    """A SOFTMAX of what is a channel of a PACK."""
    net = Net()
    x = net.map((2, 3, 3))
    sizes = net.integers(1, 1)
    axis = net.constant("axis", np.array(0, np.int32))
    one, other = net.map((1, 3, 3)), net.map((1, 3, 3))
    net.operator("SPLIT_V", [x, sizes, axis], [one, other], ("SplitVOptions", {"num_splits": 2}))
    packed = net.to("PACK", (1, 3, 3, 3), [other, one, one], "PackOptions", values_count=3, axis=3)
    shares = net.tensor("shares", (1, 3, 3), "int8", 1 / 256, -128)
    net.operator("SOFTMAX", [one], [shares], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([x], [packed, shares])


def turned_sum() -> bytes:
    """A sum of what is repeated along rows and along channels, stored with its axes exchanged."""
    net = Net()
    x, y = net.map((1, 3, 27, 1)), net.map((1, 1, 27, 21))
    total = net.to("ADD", (1, 3, 27, 21), [x, y], "AddOptions", 0.1)
    turned = net.to("TRANSPOSE", (1, 3, 21, 27), [total, net.integers(0, 1, 3, 2)])
    window = {"padding": 1, "stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2}
    greatest = net.map((1, 2, 20, 27))
    net.operator("MAX_POOL_2D", [turned], [greatest], ("Pool2DOptions", window))
    return net.finish([x, y], [greatest])


@pytest.mark.parametrize("accelerator", ["ethos-u85-128", U85])
@pytest.mark.parametrize("build", [least_of_a_part, softmax_of_a_channel, turned_sum])
def test_all_of_it_is_on_the_npu(build: Callable[[], bytes], accelerator: str) -> None:
    data = build()
    artifact = mizzen.compile(data, accelerator)
    assert artifact.report is not None
    assert all(row.device is Device.NPU for row in artifact.report.placements)
    assert not any(off(data, artifact, any_inputs(artifact)))
