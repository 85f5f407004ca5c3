"""What a network computes of constants alone is computed once, and what it holds is brought into
the form that compilers take: the numbers stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.compiler.constant_kernels import KERNELS
from mizzen.compiler.folding import Folded, folded
from mizzen.conformance.oracles import litert
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import Device
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.frontends.tflite import read
from mizzen.package.tflite.builder import NetworkBuilder

from ..frontends.tflite.sparse_files import Form, with_int4, with_sparsity  # noqa: TID252 tests are no package with a name

Array = npt.NDArray[Any]
Make = Callable[[NetworkBuilder], list[int]]

NUMBERS = np.random.default_rng(4)
CHANNELS = 6
FILTER = (CHANNELS, 3, 3, 4)
ETHOS_U = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
ACCELERATORS = (*ETHOS_U, "ethos-n78-4tops-4ple")


def int8(*shape: int) -> Array:
    return NUMBERS.integers(-90, 90, shape).astype(np.int8)


def add(net: NetworkBuilder, kind: str, inputs: list[int], *outputs: int, **options: Any) -> None:
    tables = {"SPLIT": "SplitOptions", "CONCATENATION": "ConcatenationOptions",
              "FAKE_QUANT": "FakeQuantOptions", "ADD": "AddOptions"}  # fmt: skip
    given = (tables[kind], options) if kind in tables else None
    net.operator(kind, inputs, list(outputs), given)


def _reshape(net: NetworkBuilder) -> list[int]:
    w = net.tensor("w", FILTER, np.int8, 0.01)
    shape = net.constant("shape", np.array(FILTER, np.int32))
    add(net, "RESHAPE", [net.constant("c", int8(CHANNELS, 36), 0.01), shape], w)
    return [w]


def _transpose(net: NetworkBuilder) -> list[int]:
    w = net.tensor("w", FILTER, np.int8, 0.01)
    order = net.constant("order", np.array((3, 0, 1, 2), np.int32))
    add(net, "TRANSPOSE", [net.constant("c", int8(3, 3, 4, 6), 0.01), order], w)
    return [w]


def _split(net: NetworkBuilder) -> list[int]:
    w, other = (net.tensor(name, FILTER, np.int8, 0.01) for name in ("w", "other"))
    axis = net.constant("axis", np.array(0, np.int32))
    add(net, "SPLIT", [axis, net.constant("c", int8(12, 3, 3, 4), 0.01)], other, w, num_splits=2)
    return [w]


def _concatenation(net: NetworkBuilder) -> list[int]:
    w = net.tensor("w", FILTER, np.int8, 0.01)
    parts = [net.constant(f"c{rows}", int8(rows, 3, 3, 4), 0.01) for rows in (2, 4)]
    add(net, "CONCATENATION", parts, w, axis=0)
    return [w]


def _requantised(net: NetworkBuilder) -> list[int]:
    real = net.tensor("real", FILTER, np.float32)
    w = net.tensor("w", FILTER, np.int8, 0.02)
    add(net, "DEQUANTIZE", [net.constant("c", int8(*FILTER), 0.01, 3)], real)
    add(net, "QUANTIZE", [real], w)
    return [w]


def _fake_quantised(net: NetworkBuilder) -> list[int]:
    real, near = (net.tensor(name, FILTER, np.float32) for name in ("real", "near"))
    w = net.tensor("w", FILTER, np.int8, 0.01)
    half = net.constant("half", NUMBERS.normal(0, 0.4, FILTER).astype(np.float16))
    add(net, "DEQUANTIZE", [half], real)
    add(net, "FAKE_QUANT", [real], near, min=-0.9, max=1.1, num_bits=5)
    add(net, "QUANTIZE", [near], w)
    return [w]


def _sum_of_constants(net: NetworkBuilder) -> list[int]:
    w = net.tensor("w", FILTER, np.int8, 0.02)
    parts = [net.constant(name, int8(*FILTER), 0.01) for name in "cd"]
    add(net, "ADD", parts, w)
    return [w]


MADE: dict[str, Make] = {
    "RESHAPE": _reshape,
    "TRANSPOSE": _transpose,
    "SPLIT": _split,
    "CONCATENATION": _concatenation,
    "DEQUANTIZE, QUANTIZE": _requantised,
    "DEQUANTIZE of 16 bits, FAKE_QUANT, QUANTIZE": _fake_quantised,
    "ADD": _sum_of_constants,
}


def _convolution(make: Make) -> bytes:
    """A convolution whose weights `make` computes; it gives these too."""
    net = NetworkBuilder("made")
    x = net.tensor("x", (1, 8, 8, 4), np.int8, 0.05, 3)
    (w,) = make(net)
    b = net.constant("b", NUMBERS.integers(-99, 99, CHANNELS).astype(np.int32), 0.0005)
    y = net.tensor("y", (1, 8, 8, CHANNELS), np.int8, 0.3, 2)
    options = ("Conv2DOptions", {"padding": 0, "stride_w": 1, "stride_h": 1})
    net.operator("CONV_2D", [x, w, b], [y], options)
    return net.finish([x], [y, w])


def fold(data: bytes) -> Folded:
    return folded(read(data, "net.tflite"), data)


def given() -> Array:
    return NUMBERS.integers(-128, 128, (2, 8, 8, 4)).astype(np.int8)


class TestConstantsThatAreComputed:
    @pytest.mark.parametrize("name", MADE)
    def test_as_litert_computes_them(self, name: str) -> None:
        data, x = _convolution(MADE[name]), given()
        expected = litert(data, [x[:, np.newaxis]])
        network = fold(data)
        assert [row.kind for row in network.model.main.operators] == ["CONV_2D"]
        assert read(network.data, "net").main.operators[0].index == 0
        values = network.model.main.tensors[network.model.main.outputs[1]].values
        assert values is not None
        assert np.array_equal(values, expected[1][0])
        artifact = mizzen.compile(data, "ethos-u55-128")
        found = artifact.run(x)
        assert np.array_equal(found[0], expected[0][:, 0])
        assert np.array_equal(found[1][0], expected[1][0])

    def test_report_has_every_operator_of_the_user(self) -> None:
        artifact = mizzen.compile(_convolution(_requantised), "ethos-u55-128")
        report = artifact.report
        assert report is not None
        assert [(row.index, row.kind, row.device) for row in report.placements] == [
            (0, "DEQUANTIZE", Device.NPU),
            (1, "QUANTIZE", Device.NPU),
            (2, "CONV_2D", Device.NPU),
        ]
        assert [str(row.message) for row in report.placements[0].reasons] == [
            "it gives the same in every inference, which is a constant of the artifact"
        ]
        assert report.placements[2].after == (1,)
        assert not report.diagnostics
        origins = {row.operator for stream in report.origins for row in stream.values()}
        assert origins == {2}

    def test_of_every_subgraph(self) -> None:
        data = _convolution(_transpose)
        record = read_file(data, SCHEMA, "net")
        record["subgraphs"].append({**record["subgraphs"][0], "name": "again"})
        model = fold(write(record, SCHEMA)).model
        assert [len(row.operators) for row in model.subgraphs] == [1, 1]

    def test_large_fills_stay(self) -> None:
        net = NetworkBuilder("fill")
        x = net.tensor("x", (1, 512, 512), np.int8, 0.5)
        y, filled = (net.tensor(name, (1, 512, 512), np.int8, 0.5) for name in ("y", "filled"))
        shape = net.constant("shape", np.array((1, 512, 512), np.int32))
        net.operator("FILL", [shape, net.constant("three", np.array(3, np.int8), 0.5)], [filled])
        net.operator("ADD", [x, filled], [y], ("AddOptions", {}))
        data = net.finish([x], [y])
        assert len(fold(data).model.main.operators) == 2

    def test_random_numbers_stay(self) -> None:
        net = NetworkBuilder("random")
        x, y = (net.tensor(name, (1, 4), np.int8, 0.5) for name in "xy")
        noise = net.tensor("noise", (1, 4), np.float32)
        shape = net.constant("shape", np.array((1, 4), np.int32))
        net.operator("RANDOM_UNIFORM", [shape], [noise], ("RandomOptions", {}))
        net.operator("ABS", [x], [y])
        assert len(fold(net.finish([x], [y, noise])).model.main.operators) == 2

    def test_a_network_without_any_stays_the_same_bytes(self) -> None:
        net = NetworkBuilder("plain")
        x, y = (net.tensor(name, (1, 4), np.int8, 0.5) for name in "xy")
        net.operator("ABS", [x], [y])
        data = net.finish([x], [y])
        assert fold(data).data is data


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 6.0), (-0.3, 2.7), (-5.1, 0.0)])
def test_fake_quant_as_litert(low: float, high: float, bits: int) -> None:
    net = NetworkBuilder("fake")
    x, y = (net.tensor(name, (1, 4), np.int8, 0.5) for name in "xy")
    values = np.linspace(low - 1, high + 1, 1000, dtype=np.float32)
    result = net.tensor("result", values.shape, np.float32)
    options = {"min": low, "max": high, "num_bits": bits}
    net.operator("FAKE_QUANT", [net.constant("c", values)], [result], ("FakeQuantOptions", options))
    net.operator("ABS", [x], [y])
    data = net.finish([x], [y, result])
    _, expected = litert(data, [np.zeros((1, 1, 4), np.int8)])
    model = read(data, "net")
    found = KERNELS["FAKE_QUANT"](model.main.operators[0], values)
    assert found is not None
    assert np.array_equal(found, expected[0])


def _four_bits(kind: str, per_axis: bool) -> tuple[bytes, int]:
    """A network whose weights fit into four bits, and their tensor."""
    net = NetworkBuilder("four")
    shape, axis = {
        "CONV_2D": ((6, 3, 3, 8), 0),
        "DEPTHWISE_CONV_2D": ((1, 3, 3, 8), 3),
        "FULLY_CONNECTED": ((10, 16), 0),
    }[kind]
    channels = shape[axis]
    is_plain = kind == "FULLY_CONNECTED"
    x = net.tensor("x", (1, 16) if is_plain else (1, 5, 7, 8), np.int8, 0.05, 3)
    y = net.tensor("y", (1, 10) if is_plain else (1, 5, 7, channels), np.int8, 0.3, 2)
    scales = list(np.linspace(0.04, 0.09, channels)) if per_axis else [0.05]
    weights = NUMBERS.integers(-8, 8, shape).astype(np.int8)
    w = net.constant("w", weights, scales if per_axis else scales[0], [0] * len(scales), axis=axis)
    bias = NUMBERS.integers(-99, 99, channels).astype(np.int32)
    b = net.constant("b", bias, [0.05 * row for row in scales], [0] * len(scales))
    window = {"padding": 0, "stride_w": 1, "stride_h": 1}
    options = {
        "CONV_2D": ("Conv2DOptions", window),
        "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", {**window, "depth_multiplier": 1}),
        "FULLY_CONNECTED": ("FullyConnectedOptions", {}),
    }[kind]
    net.operator(kind, [x, w, b], [y], options)
    return net.finish([x], [y]), w


WINDOWED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


class TestFourBits:
    @pytest.mark.parametrize("accelerator", ACCELERATORS)
    @pytest.mark.parametrize("per_axis", [False, True])
    @pytest.mark.parametrize("kind", WINDOWED)
    def test_as_eight(self, kind: str, per_axis: bool, accelerator: str) -> None:
        whole, w = _four_bits(kind, per_axis)
        data = with_int4(whole, w)
        shape = read(data, "net").main.tensors[0].shape
        x = NUMBERS.integers(-128, 128, (3, *shape[1:])).astype(np.int8)
        artifact, twin = (mizzen.compile(row, accelerator) for row in (data, whole))
        assert artifact.report is not None
        assert len(artifact.report.on_npu) == 1
        found = artifact.run(x)
        assert np.array_equal(found, twin.run(x))
        if accelerator in ETHOS_U:
            (expected,) = CpuKernels(whole).run([x[:, np.newaxis]])
            assert np.array_equal(found, expected[:, 0])
            if kind != "FULLY_CONNECTED":
                assert np.array_equal(found, litert(data, [x[:, np.newaxis]])[0][:, 0])

    def test_moved_in_front(self) -> None:
        data = _convolution(_reshape)
        record = read_file(data, SCHEMA, "net")
        for row in record["subgraphs"][0]["tensors"]:
            if row["name"] in ("c", "w"):
                row["type"] = int(TensorType.INT4)
            if row["name"] == "c":
                buffer = record["buffers"][row["buffer"]]
                half = buffer["data"][: buffer["data"].size // 2]
                buffer["data"] = half
        four = write(record, SCHEMA)
        x = given()
        expected = litert(four, [x[:, np.newaxis]])
        artifact = mizzen.compile(four, "ethos-u55-128")
        assert artifact.report is not None
        assert not artifact.report.on_cpu
        assert np.array_equal(artifact.run(x)[0], expected[0][:, 0])


FORMS = {
    "rows": Form((0, 1), (1,)),
    "columns": Form((1, 0), (1,)),
    "blocks of 16": Form((0, 1, 2), (1,), {1: 16}),
    "blocks of 4 by 4": Form((0, 1, 2, 3), (1,), {0: 4, 1: 4}),
    "columns of blocks": Form((1, 0, 2, 3), (0, 1), {0: 4, 1: 4}),
}


def _sparse(form: Form) -> Iterator[bytes]:
    """FULLY_CONNECTED with sparse weights, with DENSIFY in front of them, and with dense ones."""
    values = int8(16, 32) * (NUMBERS.random((16, 32)) < 0.3).astype(np.int8)
    bias = NUMBERS.integers(-99, 99, 16).astype(np.int32)
    for densified in (False, True):
        net = NetworkBuilder("sparse")
        x = net.tensor("x", (1, 32), np.int8, 0.05, 3)
        y = net.tensor("y", (1, 16), np.int8, 0.3, 2)
        held = w = net.constant("w", values, 0.01)
        if densified:
            w = net.tensor("dense", values.shape, np.int8, 0.01)
            net.operator("DENSIFY", [held], [w], ("DensifyOptions", {}))
        b = net.constant("b", bias, 0.0005)
        net.operator("FULLY_CONNECTED", [x, w, b], [y], ("FullyConnectedOptions", {}))
        data = net.finish([x], [y])
        yield with_sparsity(data, held, values, form)
        if not densified:
            yield data


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", FORMS)
def test_sparse_weights(name: str, accelerator: str) -> None:
    sparse, dense, densified = _sparse(FORMS[name])
    x = NUMBERS.integers(-128, 128, (5, 32)).astype(np.int8)
    expected = mizzen.compile(dense, accelerator).run(x)
    for data in (sparse, densified):
        artifact = mizzen.compile(data, accelerator)
        assert artifact.report is not None
        assert not artifact.report.on_cpu
        assert np.array_equal(artifact.run(x), expected)
    if accelerator in ETHOS_U:
        for data in (sparse, dense):
            (found,) = CpuKernels(data).run([x[:, np.newaxis]])
            assert np.array_equal(found[:, 0], expected)
