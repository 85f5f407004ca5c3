"""Rules for TOSA operations without a kernel: types, reductions, images, broadcasting."""

from __future__ import annotations

import math
from fractions import Fraction

from mizzen.graph import DType, Operation
from mizzen.ops import ResizeMode
from mizzen.targets.ethos_u.legal.rule import ALL, U55_U65
from mizzen.targets.ethos_u.legal.tosa_rule import (
    FOUND,
    OPERATIONS,
    WRONG,
    Judged,
    TosaRule,
    input_type,
    operations,
)

AXIS_MAXIMUM = 1 << 16
ARGMAX_MAXIMUM = 127
IMAGE_AXES = 3
"""Rows, columns and channels; what is before them is a batch."""

WHOLE_FACTORS = (2, 4, 8)
BROADCAST_RANK_MAXIMUM = 4
BROADCASTING = "ADD MAXIMUM MINIMUM MUL SUB"

_UNKNOWN = frozenset({DType.INT64, DType.UINT8, DType.UINT16})


def _no_integer(operation: Operation) -> str | None:
    for value in (*operation.operands, *operation.results):
        dtype = value.dtype
        if dtype.is_float or (dtype in _UNKNOWN and operation.kind != "RESCALE"):
            return dtype.value
    return None


def _boolean(operation: Operation) -> str | None:
    values = (*operation.operands, *operation.results)
    return "bool" if any(value.dtype is DType.BOOL for value in values) else None


def _argmax_extent(operation: Operation) -> str | None:
    axis: int = operation["axis"]
    extent = operation.operands[0].shape[axis]
    return None if extent <= ARGMAX_MAXIMUM else str(extent)


def _is_inner(operation: Operation) -> str | None:
    """Whether it works along another axis than the last."""
    axis, rank = operation["axis"], len(operation.operands[0].shape)
    return None if axis == rank - 1 else f"axis {axis} of {rank}"


def _is_last(operation: Operation) -> str | None:
    axis, rank = operation["axis"], len(operation.operands[0].shape)
    return f"axis {axis} of {rank}" if axis == rank - 1 else None


def _batch(operation: Operation) -> str | None:
    batch = math.prod(operation.operands[0].shape[:-IMAGE_AXES])
    return None if batch == 1 else f"a batch of {batch}"


def _long_sum(operation: Operation) -> str | None:
    shape = operation.operands[0].shape
    axis: int = operation["axis"]
    if axis == len(shape) - 1:
        return None
    parts = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    return None if max(parts) <= AXIS_MAXIMUM else f"{parts[0]}, {parts[1]} and {parts[2]}"


def _factors(operation: Operation) -> tuple[Fraction, Fraction] | None:
    """Give how much higher and wider the image becomes; None if that is not known."""
    scale = operation.operands[1].constant
    if scale is None:
        return None
    up_y, down_y, up_x, down_x = map(int, scale)
    return Fraction(up_y, down_y), Fraction(up_x, down_x)


def _bilinear(operation: Operation) -> str | None:
    if operation["mode"] is not ResizeMode.BILINEAR or _factors(operation) == (1, 1):
        return None
    return "bilinear"


def _odd_factor(operation: Operation) -> str | None:
    factors = _factors(operation)
    if factors is None or factors == (1, 1) or set(factors) <= set(WHOLE_FACTORS):
        return None
    return f"{factors[0]} and {factors[1]}"


def _unequal_factors(operation: Operation) -> str | None:
    factors = _factors(operation)
    if factors is None or factors[0] == factors[1] or not set(factors) <= set(WHOLE_FACTORS):
        return None
    return f"{factors[0]} and {factors[1]}"


def _first_of_one(operation: Operation) -> str | None:
    first, second = (value.shape for value in operation.operands[:2])
    if len(second) <= BROADCAST_RANK_MAXIMUM or math.prod(first) > 1:
        return None
    batch = math.prod(second[:-IMAGE_AXES])
    return f"one of 1 element, with {list(second)}" if batch > 1 else None


OTHER_RULES: tuple[TosaRule, ...] = (
    TosaRule(
        "integers",
        frozenset(OPERATIONS) - {"CONST", "CONST_SHAPE"},
        ALL,
        "integers of up to 48 bits",
        _no_integer,
        "quantise what it takes and gives",
    ),
    TosaRule(
        "boolean",
        frozenset(OPERATIONS) - {"CONST"},
        U55_U65,
        "numbers, not truth values",
        _boolean,
        "compute a mask outside of the network, or with clamp() and mul()",
    ),
    TosaRule(
        "shift-type",
        operations("ARITHMETIC_RIGHT_SHIFT LOGICAL_LEFT_SHIFT"),
        U55_U65,
        "i32 operands",
        input_type(DType.INT32),
        "multiply by a power of two",
    ),
    TosaRule(
        "reduce-type",
        operations("REDUCE_MAX REDUCE_MIN"),
        U55_U65,
        "an i8 or i16 input",
        input_type(DType.INT8, DType.INT16),
        "quantise its input to 8 or 16 bits",
    ),
    TosaRule(
        "argmax-type",
        operations("ARGMAX"),
        U55_U65,
        "an i8 input",
        input_type(DType.INT8),
        "quantise its input to 8 bits",
        FOUND,
    ),
    TosaRule(
        "argmax-extent",
        operations("ARGMAX"),
        U55_U65,
        f"an axis of up to {ARGMAX_MAXIMUM}",
        _argmax_extent,
        "leave argmax() to the caller of the network",
    ),
    TosaRule(
        "argmax-axis",
        operations("ARGMAX"),
        U55_U65,
        "the channels as its axis",
        _is_inner,
        "look for the greatest along the channels",
        judged=Judged.LAID_OUT,
    ),
    TosaRule(
        "argmax-batch",
        operations("ARGMAX"),
        U55_U65,
        "one image",
        _batch,
        "use a batch of 1",
        judged=Judged.LAID_OUT,
    ),
    TosaRule(
        "reverse-axis",
        operations("REVERSE"),
        U55_U65,
        "another axis than the channels",
        _is_last,
        "reverse rows or columns",
        judged=Judged.LAID_OUT,
    ),
    TosaRule(
        "sum-extents",
        operations("REDUCE_SUM"),
        U55_U65,
        f"up to {AXIS_MAXIMUM} elements before, along and after its axis unless it is the last",
        _long_sum,
        "sum along the last axis, or in several steps",
        judged=Judged.LAID_OUT,
    ),
    TosaRule(
        "resize-mode",
        operations("RESIZE"),
        U55_U65,
        "the nearest pixel as its mode",
        _bilinear,
        "use nearest upsampling, or a transposed convolution",
        FOUND,
    ),
    TosaRule(
        "resize-factor",
        operations("RESIZE"),
        U55_U65,
        "2, 4 or 8 as its factors",
        _odd_factor,
        "upsample by 2, 4 or 8",
    ),
    TosaRule(
        "resize-factors",
        operations("RESIZE"),
        U55_U65,
        "one factor for rows and columns",
        _unequal_factors,
        "upsample rows and columns by the same factor",
        WRONG,
    ),
    TosaRule(
        "first-of-one-element",
        operations(BROADCASTING),
        U55_U65,
        f"a first operand that is no single number, with more than {BROADCAST_RANK_MAXIMUM} axes",
        _first_of_one,
        "put the single number second, or use fewer axes",
        WRONG,
    ),
)
"""Rules of everything else."""
