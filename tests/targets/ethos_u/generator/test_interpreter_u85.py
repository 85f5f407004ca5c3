"""The reference of what only U85 has, held to numbers by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Chain,
    Elementwise,
    Kernel,
    Map,
    MatrixProduct,
    OperandScale,
    Operation,
    Order,
    Pooling,
    Resize,
    Role,
    Rounding,
    Scalar,
    Scale,
    Sequence,
    Steps,
    Table,
    Tensor,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRangeU85,
    ElementwiseMode,
    ElementwiseModeU85,
    PoolingModeU85,
    ResizeModeU85,
    ReverseU85,
    RoundMode,
    RoundModeOfmU85,
    TransposeU85,
)

from .interpreter import interpret
from .sequences import INT8, WHOLE_RANGE

ONE = Scale(1, 0)
INT16, INT32 = np.dtype(np.int16), np.dtype(np.int32)
LONG_RANGE = Activation(-32768, 32767)


def given(
    operation: Operation, *values: npt.NDArray[np.signedinteger], result: Tensor
) -> list[list[list[int]]]:
    """Return what an operation on tensors 0, 1, ... writes to the last one."""
    tensors = [
        Tensor(f"t{place}", _three(array), array.dtype, Role.INPUT)
        for place, array in enumerate(values)
    ]
    sequence = Sequence((*tensors, result), (operation,), tuple(range(len(values))), (len(values),))
    return interpret(sequence, values)[0].tolist()


def _three(array: npt.NDArray[np.signedinteger]) -> tuple[int, int, int]:
    height, width, depth = array.shape
    return height, width, depth


def whole(tensor: int, shape: tuple[int, int, int], dtype: np.dtype[np.signedinteger]) -> Map:
    """Return the map of a whole tensor."""
    return Map(Box(tensor, shape), dtype)


def of_numbers(
    mode: ElementwiseMode | ElementwiseModeU85,
    first: list[int],
    second: int,
    dtype: np.dtype[np.signedinteger] = INT8,
    rounding: Rounding = RoundMode.NATURAL,
    **others: object,
) -> list[int]:
    """Return what an elementwise operation with a number gives."""
    shape = 1, 1, len(first)
    operation = Elementwise(
        Origin(), mode, whole(0, shape, dtype), Scalar(second, dtype), whole(1, shape, dtype),
        WHOLE_RANGE if dtype == INT8 else LONG_RANGE, rounding=rounding, **others,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    values = np.array([[first]], dtype)
    return given(operation, values, result=Tensor("r", shape, dtype, Role.OUTPUT))[0][0]


@pytest.mark.parametrize(
    ("mode", "second", "expected"),
    [
        (ElementwiseModeU85.CMP_EQ, 3, [0, -1, 0]),
        (ElementwiseModeU85.CMP_NE, 3, [-1, 0, -1]),
        (ElementwiseModeU85.CMP_GE, 3, [0, -1, -1]),
        (ElementwiseModeU85.CMP_GT, 3, [0, 0, -1]),
        (ElementwiseModeU85.AND, 6, [2, 2, 4]),
        (ElementwiseModeU85.OR, 6, [-2, 7, 6]),
        (ElementwiseModeU85.XOR, 6, [-4, 5, 2]),
        (ElementwiseModeU85.AND_NOT, 6, [-8, 1, 0]),
        (ElementwiseModeU85.LSR, 1, [125, 1, 2]),
        (ElementwiseModeU85.DIV, -2, [3, -1, -2]),
    ],
)
def test_operations_of_two_operands(
    mode: ElementwiseModeU85, second: int, expected: list[int]
) -> None:
    assert of_numbers(mode, [-6, 3, 4], second) == expected


def test_all_bits_change() -> None:
    operation = Elementwise(
        Origin(), ElementwiseModeU85.NOT, whole(0, (1, 1, 2), INT8), None,
        whole(1, (1, 1, 2), INT8), WHOLE_RANGE,
    )  # fmt: skip
    found = given(
        operation, np.array([[[0, 5]]], np.int8), result=Tensor("r", (1, 1, 2), INT8, Role.OUTPUT)
    )
    assert found == [[[-1, -6]]]


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        (RoundModeOfmU85.NATURAL, [-1, 2, 2]),
        (RoundModeOfmU85.SYMMETRIC, [-2, 2, 2]),
        (RoundModeOfmU85.TRUNCATE_TO_ZERO, [-1, 1, 2]),
        (RoundModeOfmU85.TRUNCATE_TO_LOWER, [-2, 1, 2]),
    ],
)
def test_roundings_of_scales_and_shifts(rounding: RoundModeOfmU85, expected: list[int]) -> None:
    values = [-3, 3, 4]
    assert of_numbers(ElementwiseMode.SHR, values, 1, rounding=rounding) == expected
    scaled = of_numbers(ElementwiseMode.MUL, values, 1, rounding=rounding, scale=Scale(1, 1))
    assert scaled == expected


def test_both_operands_are_scaled() -> None:
    scales = OperandScale(3, 1), OperandScale(1, 2)
    found = of_numbers(ElementwiseMode.ADD, [1, 2, -5], 8, scale=Scale(2, 0), operand_scales=scales)
    assert found == [8, 10, -10]  # (1.5 -> 2) + 2, 3 + 2, (-7.5 -> -7) + 2


def test_a_doubled_scale_rounds_earlier() -> None:
    half = OperandScale(1 << 30, 31, RoundMode.DBL), OperandScale(1 << 10, 12, RoundMode.DBL, 20)
    found = of_numbers(ElementwiseMode.ADD, [0, 1, -1], 5, scale=ONE, operand_scales=half)
    assert found == [2, 3, 2]  # 5 / 4 at bit 11 first: 2.5 -> 3, then 1.5 -> 2


def test_a_slope_has_scales_of_its_own() -> None:
    scales = OperandScale(2, 0), OperandScale(1, 1)
    found = of_numbers(ElementwiseMode.LRELU, [-4, 4], 0, scale=ONE, operand_scales=scales)
    assert found == [-2, 8]


def test_high_bits_are_lost_where_nothing_clips() -> None:
    shape = 1, 1, 2
    operation = Elementwise(
        Origin(), ElementwiseMode.SHL, whole(0, shape, INT8), Scalar(1, INT8),
        whole(1, shape, INT8), Activation(-128, 127, clip_range=ClipRangeU85.NONE),
    )  # fmt: skip
    values = np.array([[[100, -3]]], np.int8)
    assert given(operation, values, result=Tensor("r", shape, INT8, Role.OUTPUT)) == [[[-56, -6]]]


@pytest.mark.parametrize(
    ("mode", "kernel", "expected"),
    [
        (PoolingModeU85.MIN, Kernel(1, 3), [-7]),
        (PoolingModeU85.SUM, Kernel(1, 3), [0]),
        (PoolingModeU85.ARGMAX_X, Kernel(1, 3), [1]),
    ],
)
def test_pooling(mode: PoolingModeU85, kernel: Kernel, expected: list[int]) -> None:
    scale = Scale(1, 16) if mode is PoolingModeU85.ARGMAX_X else ONE
    operation = Pooling(
        Origin(), mode, whole(0, (1, 3, 1), INT8), whole(1, (1, 1, 1), INT8), kernel, scale,
        WHOLE_RANGE,
    )  # fmt: skip
    values = np.array([[[3], [4], [-7]]], np.int8)
    found = given(operation, values, result=Tensor("r", (1, 1, 1), INT8, Role.OUTPUT))
    assert found == [[expected]]


def test_tables_of_wide_integers() -> None:
    entries = np.arange(-128, 128, dtype=np.int32) * 1000
    lines = np.stack([np.arange(512), np.full(512, 3)], axis=1).astype(np.int16)
    for dtype, table, expected in (
        (np.int8, Table(entries.tobytes()), [-2000, 3000]),
        (np.int16, Table(lines.tobytes()), [(255 << 7) + 3 * 126, (256 << 7) + 3 * 3]),
    ):
        operation = Pooling(
            Origin(), PoolingModeU85.SUM, whole(0, (1, 1, 2), np.dtype(dtype)),
            whole(1, (1, 1, 2), INT32), Kernel(), ONE, Activation(-32768, 32767, table),
        )  # fmt: skip
        values = np.array([[[-2, 3]]], dtype)
        result = Tensor("r", (1, 1, 2), INT32, Role.OUTPUT)
        assert given(operation, values, result=result) == [[expected]]


def test_a_resize_interpolates_in_integers() -> None:
    steps, one = Steps(2, 1, 0), Steps(1, 1, 0)
    operation = Resize(
        Origin(), ResizeModeU85.BILINEAR, whole(0, (1, 2, 1), INT8), whole(1, (1, 4, 1), INT8),
        one, steps, Scale(1, 17), WHOLE_RANGE, RoundModeOfmU85.SYMMETRIC,
    )  # fmt: skip
    values = np.array([[[-4], [1]]], np.int8)
    found = given(operation, values, result=Tensor("r", (1, 4, 1), INT8, Role.OUTPUT))
    assert found == [[[-4], [-2], [1], [1]]]


def test_a_resize_takes_the_nearest() -> None:
    steps, one = Steps(2, 1, 0), Steps(1, 1, 0)
    operation = Resize(
        Origin(), ResizeModeU85.NEAREST, whole(0, (1, 2, 1), INT8), whole(1, (1, 3, 1), INT8),
        one, steps, Scale(1, 16), WHOLE_RANGE,
    )  # fmt: skip
    values = np.array([[[-4], [1]]], np.int8)
    found = given(operation, values, result=Tensor("r", (1, 3, 1), INT8, Role.OUTPUT))
    assert found == [[[-4], [1], [1]]]


def test_a_result_is_reversed_and_then_permuted() -> None:
    order = Order(TransposeU85.HCW, ReverseU85.W)
    operation = Pooling(
        Origin(), PoolingModeU85.SUM, whole(0, (1, 2, 3), INT8), whole(1, (1, 3, 2), INT8),
        Kernel(), ONE, WHOLE_RANGE, order=order,
    )  # fmt: skip
    values = np.array([[[1, 2, 3], [4, 5, 6]]], np.int8)
    found = given(operation, values, result=Tensor("r", (1, 3, 2), INT8, Role.OUTPUT))
    assert found == [[[4, 1], [5, 2], [6, 3]]]


def test_a_product_of_matrices() -> None:
    operation = MatrixProduct(
        Origin(), whole(0, (1, 2, 2), INT8), whole(1, (1, 1, 2), INT8), whole(2, (1, 2, 1), INT8),
        ONE, WHOLE_RANGE,
    )  # fmt: skip
    first, second = np.array([[[1, 2], [3, 4]]], np.int8), np.array([[[5, -1]]], np.int8)
    result = Tensor("r", (1, 2, 1), INT8, Role.OUTPUT)
    assert given(operation, first, second, result=result) == [[[3], [11]]]


def test_links_of_a_chain_follow_each_other() -> None:
    shape = 1, 1, 2
    row = Tensor("t", shape, INT8)
    first, second = (
        Elementwise(
            Origin(), ElementwiseMode.ADD, whole(place, shape, INT8), Scalar(1, INT8),
            whole(place + 1, shape, INT8), WHOLE_RANGE, scale=ONE, scale_a=ONE, scale_b=ONE,
        )
        for place in (0, 1)
    )  # fmt: skip
    sequence = Sequence((row, row, row), (Chain((first, second)),), (0,), (2,))
    (found,) = interpret(sequence, [np.array([[[1, -1]]], np.int8)])
    assert found.tolist() == [[[3, 1]]]
