"""Rules of operators with some of their own: activations, matrices, slices, LSTM, axes.

Axes decide of reductions and TRANSPOSE: which ones a TRANSPOSE moves decides between strides,
32-bit copies and block copies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from mizzen.targets.ethos_u.legal.tflite_tensors import (
    STOPS,
    Measure,
    OperatorFacts,
    Rule,
    TensorFacts,
    axes_of,
    data_input,
    input_type,
    integers,
    named,
    operators,
    rule,
)
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85
from mizzen.targets.rules import extents

SOFTMAX_ROWS_MAXIMUM = 1 << 16
SOFTMAX_DEPTH_MAXIMUM = 1 << 16
MATRIX_AXIS_MAXIMUM = 1 << 16

_LSTM_GATES = range(1, 9)
_LSTM_PEEPHOLE = range(9, 12)
_LSTM_PROJECTION = range(16, 18)
_LSTM_NORMALISATION = range(20, 24)


_MATRIX = operators("BATCH_MATMUL FULLY_CONNECTED")


@rule("softmax-rows", "SOFTMAX", ALL).must_have(
    f"at most {SOFTMAX_ROWS_MAXIMUM} rows (height times width)", "split it by rows"
)
def _softmax_rows(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    if data is None:
        return None
    height, width = data.nhwc[1:3]
    return None if height * width <= SOFTMAX_ROWS_MAXIMUM else f"{height * width} rows"


@rule("softmax-depth", "SOFTMAX", ALL, STOPS).must_have(
    f"at most {SOFTMAX_DEPTH_MAXIMUM} elements in a row",
    "leave it out, and find the largest on the CPU",
)
def _softmax_depth(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    depth = 0 if data is None else data.nhwc[3]
    return None if depth <= SOFTMAX_DEPTH_MAXIMUM else str(depth)


def same_quantization(operator: OperatorFacts) -> str | None:
    """Measure whether all tensors but row numbers have one scale and zero point."""
    output = operator.outputs[0]
    for tensor in operator.inputs:
        if tensor is None or tensor.dtype == "INT32":
            continue
        if (tensor.scales, tensor.zero_points) != (output.scales, output.zero_points):
            return f"{_quantization(tensor)} and {_quantization(output)}"
    return None


_same_quantization = rule("same-quantisation", "MAXIMUM MINIMUM", ALL).must_have(
    "the same scale and zero point everywhere", "QUANTIZE the inputs to the output's scale"
)(same_quantization)


def _quantization(tensor: TensorFacts) -> str:
    if not tensor.scales:
        return f"none of {named(tensor)}"
    return f"scale {tensor.scales[0]:g}, zero point {tensor.zero_points[0]} of {named(tensor)}"


def _types(*wanted: str) -> Measure:
    """Measure whether the first input has one of some types, and the output the same."""

    def measure(operator: OperatorFacts) -> str | None:
        data = data_input(operator)
        if data is None:
            return None
        output = operator.outputs[0]
        if data.dtype in wanted and output.dtype == data.dtype:
            return None
        return data.dtype if output.dtype == data.dtype else f"{data.dtype} in, {output.dtype} out"

    return measure


def _computed_matrices(operator: OperatorFacts) -> tuple[TensorFacts, TensorFacts] | None:
    """Return both factors of a product of computed matrices."""
    left, right = operator.input(0), operator.input(1)
    if left is None or right is None:
        return None
    matrix = operator.kind == "BATCH_MATMUL" or not right.constant
    return (left, right) if matrix else None


@rule("matrix-type", _MATRIX, U55_U65).must_have(
    "INT8 where both factors are computed", "quantise it to INT8"
)
def _matrix_type(operator: OperatorFacts) -> str | None:
    factors = _computed_matrices(operator)
    return None if factors is None or factors[0].dtype == "INT8" else factors[0].dtype


@rule("matrix-axis", _MATRIX, U55_U65).must_have(
    f"axes of at most {MATRIX_AXIS_MAXIMUM} where both factors are computed",
    "split it, and ADD or CONCATENATION the parts",
)
def _matrix_axes(operator: OperatorFacts) -> str | None:
    factors = _computed_matrices(operator)
    if factors is None or not operator.outputs:
        return None
    left = factors[0].nhwc
    transposed = operator.kind == "BATCH_MATMUL" and operator.option("adj_x")
    longest = max(left[2] if transposed else left[3], operator.outputs[0].nhwc[3])
    return None if longest <= MATRIX_AXIS_MAXIMUM else str(longest)


@rule("slice-backwards", "STRIDED_SLICE", ALL).must_have(
    "strides from 1", "reverse outside the network, or fold it into the weights that follow"
)
def _slice_backwards(operator: OperatorFacts) -> str | None:
    strides = _strides(operator)
    return None if min(strides, default=1) > 0 else f"strides {extents(strides)}"


@rule("slice-stride", "STRIDED_SLICE", ALL).must_have(
    "strides over 1 only along height and width",
    "let a CONV_2D of 1x1 pick channels, with a weight of 1 for each that is taken; along other "
    "axes the CPU takes them",
)
def _slice_strides(operator: OperatorFacts) -> str | None:
    strides = _strides(operator)
    spatial = (len(strides) - 3, len(strides) - 2)
    fits = all(s <= 1 or axis in spatial for axis, s in enumerate(strides))
    return None if fits else f"strides {extents(strides)}"


def _strides(operator: OperatorFacts) -> tuple[int, ...]:
    """Return the strides along the axes of the data; none where masks change the axes."""
    data, strides = data_input(operator), integers(operator.input(3))
    masks = ("new_axis_mask", "ellipsis_mask")
    if data is None or strides is None:
        return ()
    if any(operator.option(mask) for mask in masks):
        return ()
    return tuple(int(stride) for stride in strides.reshape(-1))


@rule("slice-empty", "STRIDED_SLICE SLICE", ALL, STOPS).must_have(
    "an output with elements", "leave it out"
)
def _empty(operator: OperatorFacts) -> str | None:
    for tensor in operator.outputs:
        if 0 in tensor.shape:
            return f"{extents(tensor.shape)} {named(tensor)}"
    return None


@rule("reverse", "REVERSE_V2", U55_U65).must_have(
    "no axis to reverse", "reverse outside the network, or fold it into the weights that follow"
)
def _reversed(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    axes = None if data is None else axes_of(operator, data)
    return None if not axes else f"axis {axes[0]}"


@rule("split-count", "SPLIT SPLIT_V", ALL).must_have(
    "as many outputs as splits", "export the network again"
)
def _split_count(operator: OperatorFacts) -> str | None:
    count = operator.option("num_splits")
    return None if count == len(operator.outputs) else f"{count} for {len(operator.outputs)}"


@rule("gather-axis", "GATHER", U85).must_have(
    "an axis that follows its batch dimensions", "TRANSPOSE so that the axis is the first"
)
def _gather_axis(operator: OperatorFacts) -> str | None:
    axis, batch = operator.option("axis"), operator.option("batch_dims")
    return None if axis == batch else f"axis {axis}, {batch} batch dimensions"


@rule("scatter-index", "SCATTER_ND", U85).must_have(
    "constant indices of shape [..., 1], each once", "write it as CONCATENATION, or PAD and ADD"
)
def _scatter_index(operator: OperatorFacts) -> str | None:
    index = operator.input(0)
    if index is None:
        return None
    if index.values is None:
        return f"{named(index)}, which is computed"
    if index.shape[-1:] != (1,):
        return extents(index.shape)
    return None if np.unique(index.values).size == index.elements else "one index twice"


def _lstm(indices: range, absent: bool, what: str) -> Measure:
    def measure(operator: OperatorFacts) -> str | None:
        found = any((operator.input(index) is None) == absent for index in indices)
        return what if found else None

    return measure


_LSTM = operators("UNIDIRECTIONAL_SEQUENCE_LSTM")
_PLAIN_LSTM = "build the layer without it"

OPERATOR_RULES: tuple[Rule, ...] = (
    _softmax_rows,
    _softmax_depth,
    _same_quantization,
    rule("elu-type", "ELU", ALL).must_have("INT8 in and out", "quantise it to INT8")(
        _types("INT8")
    ),
    rule("gelu-type", "GELU", ALL).must_have("INT8 or UINT8, in and out", "quantise it to INT8")(
        _types("INT8", "UINT8")
    ),
    rule("hard-swish-type", "HARD_SWISH", ALL, STOPS).must_have(
        "INT8 or UINT8, in and out", "quantise it to INT8"
    )(_types("INT8", "UINT8")),
    rule("log-type", "LOG", ALL).must_have(
        "INT8 or INT16, in and out", "quantise it to INT8 or INT16"
    )(_types("INT8", "INT16")),
    rule("rsqrt-type", "RSQRT", ALL).must_have(
        "INT8 or INT16, in and out", "quantise it to INT8 or INT16"
    )(_types("INT8", "INT16")),
    _matrix_type,
    _matrix_axes,
    _slice_backwards,
    _slice_strides,
    _empty,
    _reversed,
    _split_count,
    _gather_axis,
    _scatter_index,
    rule("lstm-gates", _LSTM, ALL).must_have("weights for every gate", _PLAIN_LSTM)(
        _lstm(_LSTM_GATES, True, "a gate without weights (coupled input and forget gates)")
    ),
    rule("lstm-peephole", _LSTM, ALL).must_have("no peephole connections", _PLAIN_LSTM)(
        _lstm(_LSTM_PEEPHOLE, False, "peephole weights")
    ),
    rule("lstm-projection", _LSTM, ALL).must_have("no projection", _PLAIN_LSTM)(
        _lstm(_LSTM_PROJECTION, False, "projection weights or bias")
    ),
    rule("lstm-normalisation", _LSTM, ALL).must_have("no layer normalisation", _PLAIN_LSTM)(
        _lstm(_LSTM_NORMALISATION, False, "normalisation coefficients")
    ),
)
"""Rules of single operators."""


MEAN_AXIS_MAXIMUM = 4096
MEAN_ELEMENTS_MAXIMUM = {"INT8": 1 << 24, "UINT8": 1 << 23, "INT16": 1 << 16}
SUM_AXIS_MAXIMUM = 1 << 16
ARG_MAX_DEPTH_MAXIMUM = 127


OnReduction = Callable[[TensorFacts, list[int]], str | None]


_MEAN = operators("MEAN")
_ARG_MAX = operators("ARG_MAX")


def _reduction(measure: OnReduction) -> Measure:
    """Make a measure of an operator's first input and the axes that it reduces."""

    def on_operator(operator: OperatorFacts) -> str | None:
        data = data_input(operator)
        if data is None or not data.shape or (axes := axes_of(operator, data)) is None:
            return None
        return measure(data, axes)

    return on_operator


def _mean_batch(data: TensorFacts, _: list[int]) -> str | None:
    batch = data.nhwc[0]
    return None if batch == 1 else f"a batch of {batch}, {extents(data.shape)}"


def _mean_depth(data: TensorFacts, axes: list[int]) -> str | None:
    if len(data.shape) - 1 not in axes or 1 in data.nhwc[1:]:
        return None
    return f"a mean over the depth of {extents(data.shape)}"


def _mean_axis(data: TensorFacts, axes: list[int]) -> str | None:
    longest = max((data.shape[axis] for axis in axes), default=1)
    return None if longest <= MEAN_AXIS_MAXIMUM else str(longest)


def _mean_elements(data: TensorFacts, axes: list[int]) -> str | None:
    most = MEAN_ELEMENTS_MAXIMUM.get(data.dtype)
    count = math.prod(data.shape[axis] for axis in axes)
    return None if most is None or count <= most else f"{count} of {data.dtype}"


@rule("mean-type", _MEAN, ALL).must_have(
    "an input of INT8, UINT8 or INT16", "quantise it to one of these"
)
def _mean_type(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    return None if data is None or data.dtype in MEAN_ELEMENTS_MAXIMUM else data.dtype


def _sum_axis(data: TensorFacts, axes: list[int]) -> str | None:
    longest = max((data.shape[axis] for axis in axes if axis < len(data.shape) - 1), default=1)
    return None if longest <= SUM_AXIS_MAXIMUM else str(longest)


def _arg_max_axis(data: TensorFacts, axes: list[int]) -> str | None:
    last = len(data.shape) - 1
    return None if axes == [last] else f"axis {axes[0] if axes else 0} of {extents(data.shape)}"


@rule("arg-max-depth", _ARG_MAX, U55_U65).must_have(
    f"at most {ARG_MAX_DEPTH_MAXIMUM} elements along its axis",
    "leave it out, and find the largest on the CPU",
)
def _arg_max_depth(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    depth = 0 if data is None else data.nhwc[3]
    return None if depth <= ARG_MAX_DEPTH_MAXIMUM else str(depth)


@rule("arg-max-batch", _ARG_MAX, U55_U65, STOPS).must_have(
    "a batch of 1", "RESHAPE the batch into the height"
)
def _arg_max_batch(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    batch = 1 if data is None else data.nhwc[0]
    return None if batch == 1 else str(batch)


REDUCTION_RULES: tuple[Rule, ...] = (
    _mean_type,
    rule("mean-batch", _MEAN, ALL).must_have("a batch of 1", "RESHAPE the batch into the height")(
        _reduction(_mean_batch)
    ),
    rule("mean-depth", _MEAN, ALL).must_have(
        "height, width or depth 1 for a mean over the depth",
        "RESHAPE so that height or width is 1, or use a convolution with equal weights",
    )(_reduction(_mean_depth)),
    rule("mean-axis", _MEAN, ALL).must_have(
        f"at most {MEAN_AXIS_MAXIMUM} elements along an axis of the mean",
        "take the mean in several steps",
    )(_reduction(_mean_axis)),
    rule("mean-elements", _MEAN, ALL).must_have(
        "a sum that 32 bits hold: at most 2^24 elements of INT8, 2^23 of UINT8, 2^16 of INT16",
        "take the mean in several steps",
    )(_reduction(_mean_elements)),
    rule("sum-axis", "SUM", U55_U65, STOPS).must_have(
        f"at most {SUM_AXIS_MAXIMUM} elements along the axis of a sum", "sum in several steps"
    )(_reduction(_sum_axis)),
    rule("arg-max-axis", _ARG_MAX, U55_U65).must_have(
        "the last axis", "TRANSPOSE so that it is the last"
    )(_reduction(_arg_max_axis)),
    _arg_max_depth,
    _arg_max_batch,
    rule("arg-max-type", _ARG_MAX, ALL, STOPS).must_have(
        "an input of INT8 or UINT8", "quantise it to INT8"
    )(input_type("INT8", "UINT8")),
)
"""Rules of reductions."""


RANK_MAXIMUM_32_BIT = 4
EXTENT_MAXIMUM = 1 << 16

KEPT, NWHC, NHCW = (0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)
"""Permutations of batch, height, width and depth, by the order that they give."""

DEPTH_MAXIMUM_32_BIT: dict[tuple[int, ...], int] = {KEPT: 1 << 15, NWHC: 1 << 14, NHCW: 1 << 16}
"""Largest depth of 32-bit elements, whose halves are moved as 16-bit depth."""


_TRANSPOSE = operators("TRANSPOSE")


def _permutation(operator: OperatorFacts) -> tuple[int, ...] | None:
    order = integers(operator.input(1))
    return None if order is None else tuple(int(axis) % order.size for axis in order.reshape(-1))


@rule("transpose-32-bit", _TRANSPOSE, U55_U65).must_have(
    "for INT32, at most 4 dimensions, and height and width (with a batch of 1 and a depth up "
    "to 2^14) or width and depth exchanged, of extents up to 2^16",
    "quantise it to 16 bits or less, or move the TRANSPOSE to where it is so",
)
def _wide(operator: OperatorFacts) -> str | None:
    """Measure a permutation of 32-bit elements."""
    data, permutation = data_input(operator), _permutation(operator)
    if data is None or permutation is None or data.dtype != "INT32":
        return None
    told = f"{extents(permutation)} of {extents(data.shape)}"
    if len(data.shape) > RANK_MAXIMUM_32_BIT:
        return told
    missing = RANK_MAXIMUM_32_BIT - len(permutation)
    full = (*range(missing), *(axis + missing for axis in permutation))
    if full not in DEPTH_MAXIMUM_32_BIT or data.nhwc[3] > DEPTH_MAXIMUM_32_BIT[full]:
        return told
    batch, height, width, _depth = data.nhwc
    fits = (
        full == KEPT
        or (full == NWHC and batch == 1 and max(height, width) <= EXTENT_MAXIMUM)
        or (full == NHCW and batch * height <= EXTENT_MAXIMUM and width <= EXTENT_MAXIMUM)
    )
    return None if fits else told


@rule("transpose-extents", _TRANSPOSE, U55_U65).must_have(
    f"extents of height, width and depth up to {EXTENT_MAXIMUM}; if other axes move too, such "
    "products of all axes but two",
    "RESHAPE dimensions that stay together, or split it",
)
def _narrow(operator: OperatorFacts) -> str | None:
    """Measure a permutation of 8-bit or 16-bit elements."""
    data, permutation = data_input(operator), _permutation(operator)
    if data is None or permutation is None or data.dtype == "INT32" or not data.shape:
        return None
    rank = len(permutation)
    if permutation == tuple(range(rank)):
        return None
    told = f"{extents(permutation)} of {extents(data.shape)}"
    outer = rank - 3
    kept_outside = permutation[: max(0, outer)] == tuple(range(max(0, outer)))
    if kept_outside and math.prod(data.shape[: max(0, outer)]) == 1:
        return None if max(data.shape) <= EXTENT_MAXIMUM else told
    products = (math.prod(axes) for axes in itertools.combinations(data.shape, rank - 2))
    return None if max(products) <= EXTENT_MAXIMUM else told


TRANSPOSE_RULES: tuple[Rule, ...] = (
    _wide,
    _narrow,
)
