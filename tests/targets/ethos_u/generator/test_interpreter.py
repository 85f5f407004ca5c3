"""The reference that sequences are held to, held to numbers by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Bytes,
    ChannelScales,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scalar,
    Scale,
    Sequence,
    Table,
    Tensor,
    Tiles,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    Layout,
    PoolingMode,
    RoundMode,
)

from .interpreter import interpret
from .sequences import INT8, WHOLE_RANGE

ONE = Scale(1, 0)


def between(operation: Operation, *shapes: tuple[int, int, int]) -> Sequence:
    """Return a sequence of one operation from tensor 0 to tensor 1."""
    rows = tuple(
        Tensor(f"t{index}", shape, INT8, role)
        for index, (shape, role) in enumerate(zip(shapes, [Role.INPUT, Role.OUTPUT], strict=True))
    )
    return Sequence(rows, (operation,), (0,), (1,))


def test_a_convolution_pads_with_the_zero_point() -> None:
    scales = ChannelScales(np.array([10]), np.array([1]), np.array([1]))
    weights = np.array([1, 2, 3], np.int16).reshape(1, 1, 3, 1)
    convolution = Convolution(
        Origin(), Map(Box(0, (1, 3, 1)), INT8, 1), Map(Box(1, (1, 3, 1)), INT8, -1),
        Kernel(1, 3, pad_left=1, pad_right=1), weights, scales, WHOLE_RANGE,
    )  # fmt: skip
    (found,) = interpret(
        between(convolution, (1, 3, 1), (1, 3, 1)), [np.array([[[3], [1], [5]]], np.int8)]
    )
    # (2*2 + 0*3 + 10)/2, (2*1 + 4*3 + 10)/2, (4*2 + 10)/2, and the zero point
    assert found.ravel().tolist() == [6, 11, 8]


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [(RoundMode.DBL, -3), (RoundMode.NATURAL, -2), (RoundMode.TRUNCATE, -2)],
)
def test_halves_are_rounded_as_the_mode_says(rounding: RoundMode, expected: int) -> None:
    pool = Pooling(
        Origin(), PoolingMode.AVERAGE, Map(Box(0, (1, 1, 1)), INT8), Map(Box(1, (1, 1, 1)), INT8),
        Kernel(), Scale(1 << 31, 32), WHOLE_RANGE, rounding=rounding,
    )  # fmt: skip
    (found,) = interpret(between(pool, (1, 1, 1), (1, 1, 1)), [np.full((1, 1, 1), -5, np.int8)])
    assert found.item() == expected


def test_a_padded_average_divides_by_what_is_there() -> None:
    pool = Pooling(
        Origin(), PoolingMode.AVERAGE, Map(Box(0, (1, 3, 1)), INT8), Map(Box(1, (1, 3, 1)), INT8),
        Kernel(1, 3, pad_left=1, pad_right=1), ONE, WHOLE_RANGE,
    )  # fmt: skip
    (found,) = interpret(
        between(pool, (1, 3, 1), (1, 3, 1)), [np.array([[[1], [2], [9]]], np.int8)]
    )
    assert found.ravel().tolist() == [2, 4, 6]


def test_bricks_tiles_steps_and_strides_find_the_same_elements() -> None:
    values = np.arange(2 * 3 * 20, dtype=np.int8).reshape(2, 3, 20)
    bricks = Tensor("t0", (2, 3, 20), INT8, Role.INPUT, Layout.NHCWB16)
    views = {
        (1, 3, 4): Box(0, (1, 3, 4), (1, 0, 16)),
        (1, 3, 20): Box(0, (1, 3, 20), (1, 0, 0), (2, 1)),
        (3, 2, 4): Bytes(0, (3, 2, 4), 48, (16, 96, 1)),
        (1, 3, 16): Bytes(
            0, (1, 3, 16), 96, (96, 16, 48), Layout.NHCWB16, Tiles(1, 1, 2, (0, 0, 0))
        ),
    }
    expected = [
        values[1:, :, 16:],
        values[1:],
        values[:, :, 16:].swapaxes(0, 1),
        np.concatenate([values[1:, :2, :16], values[:1, :1, :16]], axis=1),
    ]
    for (shape, view), wanted in zip(views.items(), expected, strict=True):
        copy = Pooling(
            Origin(), PoolingMode.MAX, Map(view, INT8), Map(Box(1, shape), INT8), Kernel(), ONE,
            WHOLE_RANGE,
        )  # fmt: skip
        sequence = between(copy, (2, 3, 20), shape)
        sequence = replace(sequence, tensors=(bricks, sequence.tensors[1]))
        (found,) = interpret(sequence, [values])
        np.testing.assert_array_equal(found, wanted)


def test_scalars_tables_and_the_order_of_operands() -> None:
    table = Table(np.arange(-128, 128).astype(np.int8)[::-1].tobytes())
    minus = Elementwise(
        Origin(), ElementwiseMode.SUB, Map(Box(0, (1, 1, 2)), INT8, 1), Scalar(9, INT8, 4),
        Map(Box(1, (1, 1, 2)), INT8), Activation(-128, 127, table), reversed=True, scale=ONE,
        scale_a=ONE, scale_b=ONE,
    )  # fmt: skip
    (found,) = interpret(between(minus, (1, 1, 2), (1, 1, 2)), [np.array([[[1, 10]]], np.int8)])
    assert found.ravel().tolist() == [-6, 3]  # 5 - 0, 5 - 9, and -1 - v out of the table
