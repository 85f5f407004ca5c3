"""Whole numbers and windows of a PyTorch program through our rules, and on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.graph import DType, Graph, RoundingMode, Value, integer_range
from mizzen.ops import Builder
from mizzen.reference.evaluation import evaluate
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Convolution, Operation, Pooling
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import resolve

from .test_lower_graph import graph_of, scaled

NAMES = ("ethos-u55-128", "ethos-u65-256")


def require_same(graph: Graph, limit: int = 1 << 15) -> tuple[Operation, ...]:
    """Hold the program of a graph to the reference, on two machines; return its operations."""
    lowered = lower(graph)
    assert lowered.sequence is not None, [row.reason for row in lowered.refusals]
    draw = np.random.default_rng(1)
    inputs: list[np.ndarray] = []
    for value in graph.inputs:
        low, high = integer_range(value.dtype)
        low, high = max(low, -limit), min(high, limit)
        numbers = draw.integers(low, high, value.shape, endpoint=True)
        inputs.append(numbers.astype(value.dtype.numpy))
    wanted = evaluate(graph, inputs)
    places = [lowered.sequence.tensors[index].shape for index in lowered.sequence.inputs]
    images = [row.reshape(1, *shape) for row, shape in zip(inputs, places, strict=True)]
    for name in NAMES:
        program = emit(plain(lowered.sequence, resolve(name)), ACCELERATORS[name])
        assert [row.render() for row in find_hazards(program).diagnostics] == []
        outputs = Simulator(program).run(images, 1).outputs
        for one, other in zip(outputs, wanted, strict=True):
            assert np.array_equal(one.ravel(), other.ravel())
    return lowered.sequence.operations


@pytest.mark.parametrize(
    ("before", "after"),
    [(DType.INT32, DType.INT8), (DType.INT32, DType.INT16), (DType.INT16, DType.INT8)],
)
@pytest.mark.parametrize("shape", [(7,), (2, 3, 5), (1, 4, 3, 16)])
def test_low_bits_are_kept(before: DType, after: DType, shape: tuple[int, ...]) -> None:
    def build(b: Builder, x: Value) -> Value:
        return b("CAST", x, dtype=after)

    assert len(require_same(graph_of(shape, build, before), 1 << 31)) == 1


def test_low_bits_are_scaled_on_the_way() -> None:
    def build(b: Builder, x: Value) -> Value:
        low = b("CAST", x, dtype=DType.INT8)
        return scaled(b, low, DType.INT8, 3 << 29, 31, (4, -9))

    assert len(require_same(graph_of((2, 3, 5), build, DType.INT32))) == 1


def test_whole_numbers_wrap_around() -> None:
    def build(b: Builder, x: Value) -> Value:
        wide = b("CAST", x, dtype=DType.INT32)
        return b("CAST", b("MUL", wide, wide, b.constant([0], DType.INT8)), dtype=DType.INT8)

    require_same(graph_of((3, 7), build))


def convolved(b: Builder, x: Value, kernel: tuple[int, int], stride: tuple[int, int]) -> Value:
    weights = np.random.default_rng(4).integers(-127, 128, (5, *kernel, 3)).astype(np.int8)
    sums = b(
        "CONV2D", x, b.constant(weights, DType.INT8), b.constant(np.arange(5), DType.INT32),
        b.constant([5], DType.INT8), b.constant([0], DType.INT8),
        pad=(2, 3, 1, 0), stride=stride, dilation=(1, 1),
    )  # fmt: skip
    return scaled(b, sums, DType.INT8, 1 << 30, 42)


@pytest.mark.parametrize("shape", [(1, 67, 6, 3), (2, 70, 5, 3)])
def test_kernels_that_are_too_tall_go_over_columns(shape: tuple[int, ...]) -> None:
    rows = shape[1] + 5

    def build(b: Builder, x: Value) -> Value:
        return convolved(b, x, (rows - 4, 2), (2, 1))

    operations = require_same(graph_of(shape, build))
    assert all(isinstance(row, Convolution) and row.kernel.height == 2 for row in operations)


@pytest.mark.parametrize("kind", ["AVG_POOL2D", "MAX_POOL2D"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_pools_that_are_too_tall_go_over_columns(kind: str, dtype: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        zeros = [b.constant([0], dtype)] * 2 if kind == "AVG_POOL2D" else []
        return b(kind, x, *zeros, kernel=(300, 2), stride=(1, 2), pad=(0, 0, 0, 0))

    operations = require_same(graph_of((1, 302, 4, 5), build, dtype))
    assert all(isinstance(row, Pooling) and row.kernel.width == 300 for row in operations)


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "dilation"),
    [
        ((1, 1), (1, 1), (1, 1, 2, 2), (1, 1)),
        ((2, 3), (1, 1), (3, 2, 4, 0), (1, 1)),
        ((1, 2), (2, 3), (1, 2, 3, 5), (1, 1)),
        ((2, 2), (1, 1), (5, 3, 0, 4), (2, 2)),
    ],
)
@pytest.mark.parametrize("depthwise", [False, True])
def test_windows_in_their_padding_give_the_bias(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, ...],
    dilation: tuple[int, int],
    depthwise: bool,
) -> None:
    sides = [
        size + before + after - step * (taps - 1) - 1
        for size, before, after, taps, step in zip(
            (4, 5), pad[::2], pad[1::2], kernel, dilation, strict=True
        )
    ]
    rows, columns = (4 - sides[0] % stride[0], 5 - sides[1] % stride[1])

    def build(b: Builder, x: Value) -> Value:
        shape = (*kernel, 4, 1) if depthwise else (6, *kernel, 4)
        weights = np.random.default_rng(4).integers(-127, 128, shape).astype(np.int8)
        bias = np.arange(4 if depthwise else 6) * 300
        sums = b(
            "DEPTHWISE_CONV2D" if depthwise else "CONV2D", x, b.constant(weights, DType.INT8),
            b.constant(bias, DType.INT32), b.constant([5], DType.INT8),
            b.constant([0], DType.INT8), pad=pad, stride=stride, dilation=dilation,
        )  # fmt: skip
        return scaled(b, sums, DType.INT8, 1 << 30, 38)

    require_same(graph_of((1, rows, columns, 4), build))


def looked_up(b: Builder, x: Value, steepest: int = 300) -> Value:
    entries = np.cumsum(np.random.default_rng(5).integers(-steepest, steepest, 513))
    return b("TABLE", x, b.constant(entries.clip(-32768, 32767), DType.INT16))


def test_tables_give_32_bits() -> None:
    require_same(graph_of((1, 33, 7, 16), looked_up, DType.INT16))


def test_tables_of_32_bits_are_scaled_otherwise() -> None:
    def build(b: Builder, x: Value) -> Value:
        return scaled(b, looked_up(b, x, 9000), DType.INT16, 3 << 29, 39, (0, 0))

    require_same(graph_of((4, 500), build, DType.INT16))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("step", [1, 3])
def test_volumes_are_convolutions_of_their_slices(dtype: DType, step: int) -> None:
    def build(b: Builder, x: Value) -> Value:
        weights = np.random.default_rng(4).integers(-127, 128, (5, 1, 3, 2, 4)).astype(np.int8)
        zero = 5 if dtype is DType.INT8 else 0
        wide = DType.INT32 if dtype is DType.INT8 else DType.INT48
        sums = b(
            "CONV3D", x, b.constant(weights, DType.INT8), b.constant(np.arange(5), wide),
            b.constant([zero], dtype), b.constant([0], DType.INT8),
            pad=(0, 0, 1, 0, 0, 2), stride=(step, 2, 1), dilation=(1, 1, 2),
        )  # fmt: skip
        if dtype is DType.INT8:
            return scaled(b, sums, dtype, 1 << 30, 40)
        return b(
            "RESCALE", sums, b.constant([1 << 14], DType.INT16), b.constant([22], DType.INT8),
            b.constant([0], sums.dtype), b.constant([0], dtype),
            scale32=False, rounding_mode=RoundingMode.SINGLE_ROUND, per_channel=False,
        )  # fmt: skip

    require_same(graph_of((2, 1 + 2 * step, 6, 5, 4), build, dtype), 1 << 8)


@pytest.mark.parametrize(("rows", "pad"), [(70, (0, 0)), (40, (50, 9)), (75, (2, 66))])
def test_dilations_that_are_too_long_are_phases(rows: int, pad: tuple[int, int]) -> None:
    def build(b: Builder, x: Value) -> Value:
        weights = np.random.default_rng(4).integers(-127, 128, (5, 3, 3, 4)).astype(np.int8)
        sums = b(
            "CONV2D", x, b.constant(weights, DType.INT8), b.constant(np.arange(5), DType.INT32),
            b.constant([5], DType.INT8), b.constant([0], DType.INT8),
            pad=(*pad, 1, 0), stride=(1, 1), dilation=(33, 33),
        )  # fmt: skip
        return scaled(b, sums, DType.INT8, 1 << 30, 40)

    require_same(graph_of((1, rows, 68, 4), build))


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_SUM"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_reductions_are_of_as_many_rows_as_there_are(kind: str, dtype: DType, axis: int) -> None:
    shape = tuple(300 if place == axis else size for place, size in enumerate((1, 3, 4, 5)))

    def build(b: Builder, x: Value) -> Value:
        if kind == "REDUCE_MAX":
            return b(kind, x, axis=axis)
        total = b(kind, scaled(b, x, DType.INT32), axis=axis)
        return scaled(b, total, dtype, 1 << 30, 36, (0, 0))

    operations = require_same(graph_of(shape, build, dtype))
    assert len(operations) <= 5


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT32])
@pytest.mark.parametrize("narrow", [False, True])
def test_sums_are_over_more_channels_than_an_operation_has(dtype: DType, *, narrow: bool) -> None:
    def build(b: Builder, x: Value) -> Value:
        zeros = (3 if dtype is DType.INT8 else 0, 0)
        total = b("REDUCE_SUM", scaled(b, x, DType.INT32, zeros=zeros), axis=2)
        return scaled(b, total, DType.INT8, 3 << 29, 42, (0, 7)) if narrow else total

    require_same(graph_of((1, 2, (1 << 16) + 9), build, dtype), 1 << 8)


def test_means_are_of_larger_images_than_a_window() -> None:
    def build(b: Builder, x: Value) -> Value:
        wide = scaled(b, x, DType.INT32, zeros=(3, 0))
        total = b("REDUCE_SUM", b("REDUCE_SUM", wide, axis=2), axis=1)
        return scaled(b, total, DType.INT8, 3 << 29, 44, (0, 7))

    require_same(graph_of((1, 300, 260, 3), build))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_averages_are_of_images_larger_than_a_window(dtype: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        zeros = (9, -4) if dtype is DType.INT8 else (0, 0)
        zero = [b.constant([each], dtype) for each in zeros]
        return b("AVG_POOL2D", x, *zero, kernel=(300, 260), stride=(1, 1), pad=(0, 0, 0, 0))

    require_same(graph_of((1, 300, 260, 3), build, dtype), 1 << 13)


def test_the_greatest_of_windows_that_are_too_large_is_found_in_two_passes() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b("MAX_POOL2D", x, kernel=(300, 260), stride=(2, 1), pad=(3, 4, 100, 3))

    require_same(graph_of((1, 297, 259, 3), build))


@pytest.mark.parametrize(
    ("columns", "taps", "stride", "dilation", "pad"),
    [
        (200, 3, 1, 64, (128, 128)),
        (200, 3, 1, 128, (256, 0)),
        (90, 4, 1, 65, (130, 261)),
        (40, 310, 2, 1, (150, 300)),
        (40, 310, 1, 1, (300, 9)),
        (300, 900, 5, 1, (140, 860)),
    ],
)
@pytest.mark.parametrize("depthwise", [False, True])
def test_paddings_are_longer_than_an_operation_has(
    columns: int, taps: int, stride: int, dilation: int, pad: tuple[int, int], *, depthwise: bool
) -> None:
    kind = "DEPTHWISE_CONV2D" if depthwise else "CONV2D"

    def build(b: Builder, x: Value) -> Value:
        shape = (1, taps, 4, 1) if depthwise else (4, 1, taps, 4)
        weights = np.random.default_rng(4).integers(-127, 128, shape).astype(np.int8)
        sums = b(
            kind, x, b.constant(weights, DType.INT8), b.constant(np.arange(4), DType.INT32),
            b.constant([5], DType.INT8), b.constant([0], DType.INT8),
            pad=(0, 0, *pad), stride=(1, stride), dilation=(1, dilation),
        )  # fmt: skip
        return scaled(b, sums, DType.INT8, 1 << 30, 40)

    require_same(graph_of((1, 2, columns, 4), build))


def test_what_several_operations_read_is_copied_once() -> None:
    def count(readers: int) -> int:
        def build(b: Builder, x: Value) -> Value:
            turned = b("TRANSPOSE", x, perms=(0, 3, 2, 1))
            operations = [convolved(b, turned, (4, 2), (1, 1)) for _ in range(readers)]
            return b("CONCAT", *operations, axis=3)

        return len(require_same(graph_of((1, 3, 5, 6), build)))

    assert count(3) == count(2) + 1


@pytest.mark.parametrize("kernel", [(65, 65), (1, 4100)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_kernels_larger_than_the_machine_has_are_sums(
    kernel: tuple[int, int], *, per_channel: bool
) -> None:
    def build(b: Builder, x: Value) -> Value:
        weights = np.random.default_rng(4).integers(-127, 128, (5, *kernel, 3)).astype(np.int8)
        sums = b(
            "CONV2D", x, b.constant(weights, DType.INT8), b.constant(np.arange(5), DType.INT32),
            b.constant([5], DType.INT8), b.constant([0], DType.INT8),
            pad=(0, 1, 1, 0), stride=(1, 1), dilation=(1, 1),
        )  # fmt: skip
        if not per_channel:
            return scaled(b, sums, DType.INT8, 1 << 30, 44, (0, 9))
        scales = [1 << 30, 3 << 29, 5 << 28, 1 << 30, (1 << 31) - 7]
        return b(
            "RESCALE", sums, b.constant(scales, DType.INT32),
            b.constant([44, 44, 45, 45, 44], DType.INT8), b.constant([0], DType.INT32),
            b.constant([-3], DType.INT8), scale32=True,
            rounding_mode=RoundingMode.SINGLE_ROUND, per_channel=True,
        )  # fmt: skip

    require_same(graph_of((1, kernel[0] + 1, kernel[1] + 2, 3), build))
