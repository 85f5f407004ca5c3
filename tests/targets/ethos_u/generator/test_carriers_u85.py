"""What U85 carries, looks up and convolves in forms of its own: the reference's integers."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.graph import DType, RoundingMode, Value
from mizzen.ops import Builder

from .test_lower_graph import scaled
from .test_rules_u85 import graph_of, kinds, require_same

FULL = 2, 5, 4, 19


def test_a_table_of_16_bits_that_gives_32_is_one_operation() -> None:
    entries = np.cumsum(np.random.default_rng(1).integers(-100, 100, 513))

    def build(b: Builder, x: Value) -> Value:
        return b("TABLE", x, b.constant(entries, DType.INT16))

    assert kinds(require_same(graph_of(build, (FULL, DType.INT16)))) == ["SUM"]


@pytest.mark.parametrize("before", [DType.INT8, DType.INT16, DType.INT32])
@pytest.mark.parametrize("after", [DType.INT8, DType.INT16, DType.INT32])
def test_channels_have_scales_of_their_own(before: DType, after: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        return b(
            "RESCALE", x, b.constant(np.arange(1, 20) + (1 << 30), DType.INT32),
            b.constant(30 + np.arange(19) // 8, DType.INT8), b.constant([0], before),
            b.constant([0], after), scale32=True, rounding_mode=RoundingMode.SINGLE_ROUND,
            per_channel=True,
        )  # fmt: skip

    count = len(require_same(graph_of(build, (FULL, before)), limit=1 << 28).operations)
    assert count == (3 if before is DType.INT32 else 1)


@pytest.mark.parametrize("unsigned", [(True, False), (False, True)])
def test_bytes_are_taken_and_given_as_unsigned(unsigned: tuple[bool, bool]) -> None:
    def build(b: Builder, x: Value) -> Value:
        zeros = [b.constant([100 if flag else -7], DType.INT8) for flag in unsigned]
        return b(
            "RESCALE", x, b.constant([3 << 29], DType.INT32), b.constant([31], DType.INT8), *zeros,
            scale32=True, rounding_mode=RoundingMode.SINGLE_ROUND, per_channel=False,
            input_unsigned=unsigned[0], output_unsigned=unsigned[1],
        )  # fmt: skip

    assert kinds(require_same(graph_of(build, (FULL, DType.INT8)))) == ["SUM"]


def test_truths_are_padded() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b("PAD", x, b.shape([0, 1, 2, 0, 1, 1, 0, 3]), b.constant([1], DType.BOOL))

    require_same(graph_of(build, (FULL, DType.BOOL)))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("pads", [(0, 0), (1, 1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_kernels_of_several_slices(dtype: DType, pads: tuple[int, int], stride: int) -> None:
    draw, sums = np.random.default_rng(2), DType.INT32 if dtype is DType.INT8 else DType.INT48
    weights = draw.integers(-127, 128, (7, 3, 3, 2, 5))

    def build(b: Builder, x: Value) -> Value:
        value = b(
            "CONV3D", x, b.constant(weights, DType.INT8),
            b.constant(draw.integers(-999, 999, 7), sums),
            b.constant([3 if dtype is DType.INT8 else 0], dtype), b.constant([0], DType.INT8),
            pad=(*pads, 1, 1, 0, 0), stride=(stride, 1, 1), dilation=(1, 1, 1), acc_type=sums,
        )  # fmt: skip
        return b(
            "RESCALE", value, b.constant([20011], DType.INT16), b.constant([30], DType.INT8),
            b.constant([0], sums), b.constant([0], dtype), scale32=False,
            rounding_mode=RoundingMode.SINGLE_ROUND, per_channel=False,
        )  # fmt: skip

    require_same(graph_of(build, ((2, 5, 5, 6, 5), dtype)))


@pytest.mark.parametrize("bias", [0, 700])
@pytest.mark.parametrize("stride", [1, 2])
def test_computed_weights_of_single_elements(bias: int, stride: int) -> None:
    def build(b: Builder, x: Value, weights: Value) -> Value:
        value = b(
            "CONV2D", x, weights, b.constant(np.arange(7) * bias, DType.INT32),
            b.constant([3], DType.INT8), b.constant([-2], DType.INT8), pad=(0, 0, 0, 0),
            stride=(stride, stride), dilation=(1, 1), acc_type=DType.INT32,
        )  # fmt: skip
        return scaled(b, value, DType.INT8, 1289904135, 43, (0, 5))

    graph = graph_of(build, ((2, 5, 5, 19), DType.INT8), ((7, 1, 1, 19), DType.INT8))
    assert kinds(require_same(graph)).count("MatrixProduct") == 2


def test_functions_round_what_turns_a_map() -> None:
    entries = np.random.default_rng(3).integers(-128, 128, 256)

    def build(b: Builder, x: Value) -> Value:
        value = b("CLAMP", x, min_val=-50, max_val=90)
        value = b("TRANSPOSE", b("REVERSE", value, axis=2), perms=(0, 3, 1, 2))
        value = b("TABLE", value, b.constant(entries, DType.INT8))
        value = b("REVERSE", b("CLAMP", value, min_val=-100, max_val=100), axis=3)
        return b("CLAMP", value, min_val=-7, max_val=127)

    require_same(graph_of(build, (FULL, DType.INT8)))


def test_what_is_chosen_is_scaled_to_another_type() -> None:
    def build(b: Builder, x: Value, y: Value) -> tuple[Value, ...]:
        greatest = b("MAX_POOL2D", x, kernel=(2, 2), stride=(1, 1), pad=(0, 0, 0, 0))
        truth = b("GREATER", scaled(b, x, DType.INT32), scaled(b, y, DType.INT32))
        chosen = b("SELECT", truth, x, y)
        return tuple(
            scaled(b, value, DType.INT16, 1 << 30, 23, (-3, 0)) for value in (greatest, chosen)
        )

    require_same(graph_of(build, (FULL, DType.INT8), (FULL, DType.INT8)))
