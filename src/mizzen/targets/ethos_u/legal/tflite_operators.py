"""Rules of operators with one or two of their own: activations, matrices, slices, LSTM."""

from __future__ import annotations

import numpy as np

from mizzen.targets.ethos_u.commands import ALL, U55_U65, U85
from mizzen.targets.ethos_u.legal.tflite_facts import (
    STOPS,
    Measure,
    OperatorFacts,
    Rule,
    TensorFacts,
    axes_of,
    data_input,
    named,
    operators,
    rule,
)
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


@rule("same-quantisation", "MAXIMUM MINIMUM", ALL).must_have(
    "the same scale and zero point everywhere", "QUANTIZE the inputs to the output's scale"
)
def _same_quantization(operator: OperatorFacts) -> str | None:
    output = operator.outputs[0]
    for tensor in operator.inputs:
        if tensor is None or tensor.dtype == "INT32":
            continue
        if (tensor.scales, tensor.zero_points) != (output.scales, output.zero_points):
            return f"{_quantization(tensor)} and {_quantization(output)}"
    return None


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


@rule("slice-stride", "STRIDED_SLICE", ALL).must_have(
    "strides from 1, over 1 only along height and width",
    "TRANSPOSE so that the axis is height or width",
)
def _slice_strides(operator: OperatorFacts) -> str | None:
    data, parameter = data_input(operator), operator.input(3)
    masks = ("new_axis_mask", "ellipsis_mask")
    if data is None or parameter is None or parameter.values is None:
        return None
    if any(operator.option(mask) for mask in masks):
        return None
    strides = [int(stride) for stride in parameter.values.reshape(-1)]
    rank = len(data.shape)
    spatial = (rank - 3, rank - 2)
    fits = all(s == 1 or (s > 1 and axis in spatial) for axis, s in enumerate(strides))
    return None if fits else f"strides {extents(tuple(strides))}"


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
