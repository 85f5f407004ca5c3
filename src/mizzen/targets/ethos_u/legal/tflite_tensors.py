"""What rules ask about a TFLite operator, how a row is made, and the rules about tensors.

Operator kinds, element types and option names are those of the TFLite schema. Rules about the
tensors of an operator are of types, shapes, quantisation, constants and weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets import rules
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch
from mizzen.targets.rules import extents


@dataclass(frozen=True, slots=True, eq=False)
class TensorFacts:
    """A tensor.

    shape_signature  the shape with -1 where an extent is open; None if all are known
    dtype            name of the element type, ``INT8``
    scales           quantisation scales: none, one, or one for each index of an axis
    zero_points      as many as scales
    values           contents of a constant [shape]; None if it has none or they are not dense
    """

    name: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...] | None
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    constant: bool
    values: npt.NDArray[Any] | None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nhwc(self) -> tuple[int, int, int, int]:
        """The shape as batch, height, width and depth; leading extents are one batch."""
        padded = (1, 1, 1, 1, *self.shape)
        height, width, depth = padded[-3:]
        return math.prod(padded[:-3]), height, width, depth


@dataclass(frozen=True, slots=True, eq=False)
class OperatorFacts:
    """An operator, and the NPU that it is to run on.

    `inputs` has None where an optional input is absent.
    """

    kind: str
    arch: Arch
    inputs: tuple[TensorFacts | None, ...]
    outputs: tuple[TensorFacts, ...]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    intermediates: tuple[TensorFacts, ...] = ()

    def input(self, index: int) -> TensorFacts | None:
        """Return an input; None if the operator does not have it."""
        return self.inputs[index] if index < len(self.inputs) else None

    def option(self, name: str, default: int = 0) -> int:
        """Return an option that is a number or a flag."""
        value = self.options.get(name)
        return default if value is None else int(value)


SOURCE = "Vela 5.2.0, supported operators"
STOPS = "Vela 5.2.0 stops at it, found by compiling"

Rule = rules.Rule[OperatorFacts]
Measure = rules.Measure[OperatorFacts]


def rule(
    id: str, kinds: str | frozenset[str], archs: tuple[Arch, ...], source: str = SOURCE
) -> rules.Head:
    """Begin a row about operators that a text lists or a set holds."""
    return rules.Head(id, source, rules.listed(kinds), archs)


_EVERYWHERE = (
    "ABS ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D ELU EXP "
    "EXPAND_DIMS FULLY_CONNECTED GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN "
    "MINIMUM MIRROR_PAD MUL NEG PACK PAD PADV2 PRELU QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 "
    "RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 RSQRT "
    "SLICE SOFTMAX SPLIT SPLIT_V SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TILE "
    "TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK"
)
_ON_U85 = (
    "ASSIGN_VARIABLE CAST DIV EQUAL GATHER GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND "
    "LOGICAL_NOT LOGICAL_OR NOT_EQUAL READ_VARIABLE REDUCE_ALL REDUCE_ANY SCATTER_ND SELECT "
    "SELECT_V2"
)

OPERATORS: dict[str, tuple[Arch, ...]] = dict(
    sorted(
        [(kind, ALL) for kind in _EVERYWHERE.split()] + [(kind, U85) for kind in _ON_U85.split()]
    )
)
"""Operators that an NPU has a form of, and the architectures that have it."""


def operators(kinds: str) -> frozenset[str]:
    """Return the operators of a list in a text."""
    return frozenset(kinds.split())


def every_operator_but(*kinds: str) -> frozenset[str]:
    """Return all operators of the table except some."""
    return frozenset(OPERATORS) - frozenset(kinds)


_FIRST = (0,)
_FIRST_ONLY = (
    "ARG_MAX EXPAND_DIMS GATHER MEAN MIRROR_PAD PAD PADV2 PRELU REDUCE_ALL REDUCE_ANY REDUCE_MAX "
    "REDUCE_MIN RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SLICE SPLIT_V SQUEEZE "
    "STRIDED_SLICE SUM TILE TRANSPOSE UNIDIRECTIONAL_SEQUENCE_LSTM"
)
_DATA_INPUTS: dict[str, tuple[int, ...]] = {
    "CONV_2D": _FIRST,
    "DEPTHWISE_CONV_2D": _FIRST,
    "FULLY_CONNECTED": _FIRST,
    "TRANSPOSE_CONV": (2,),
    "SPLIT": (1,),
    "SCATTER_ND": (1,),
    "SELECT": (1, 2),
    "SELECT_V2": (1, 2),
    **dict.fromkeys(
        _FIRST_ONLY.split(),
        _FIRST,
    ),
}
WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Operators with weights and a bias."""


def feature_maps(operator: OperatorFacts) -> list[TensorFacts]:
    """Return the data inputs, constant or not, and the outputs: what has one type and layout."""
    places = _DATA_INPUTS.get(operator.kind, tuple(range(len(operator.inputs))))
    inputs = [operator.input(place) for place in places]
    return [*(tensor for tensor in inputs if tensor is not None), *operator.outputs]


def data_input(operator: OperatorFacts) -> TensorFacts | None:
    """Return the first data input."""
    return operator.input(_DATA_INPUTS.get(operator.kind, _FIRST)[0])


def weights(operator: OperatorFacts) -> TensorFacts | None:
    """Return the weights of a convolution or fully connected layer."""
    return operator.input(1) if operator.kind in WEIGHTED else None


def bias(operator: OperatorFacts) -> TensorFacts | None:
    """Return the bias of a convolution or fully connected layer."""
    if operator.kind not in WEIGHTED:
        return None
    return operator.input(3 if operator.kind == "TRANSPOSE_CONV" else 2)


def named(tensor: TensorFacts) -> str:
    """Name a tensor in a message."""
    return f'"{tensor.name}"'


def integers(tensor: TensorFacts | None) -> npt.NDArray[np.integer[Any]] | None:
    """Return a constant's integers, one at least; None for others, which other rules refuse."""
    values = None if tensor is None else tensor.values
    return None if values is None or not values.size or values.dtype.kind not in "iu" else values


def axes_of(operator: OperatorFacts, data: TensorFacts) -> list[int] | None:
    """Return the axes that an operator works along, counted from 0; None if they are not known."""
    parameter = operator.input(1)
    if parameter is None or parameter.values is None:
        return None
    axes = integers(parameter)
    if axes is None and parameter.values.size:
        return None
    rank = max(1, len(data.shape))
    return sorted({int(axis) % rank for axis in axes.reshape(-1)} if axes is not None else ())


def input_type(*wanted: str) -> Measure:
    """Measure whether the first data input has one of some types."""

    def measure(operator: OperatorFacts) -> str | None:
        data = data_input(operator)
        return None if data is None or data.dtype in wanted else data.dtype

    return measure


WEIGHT_SUM_MAXIMUM = 127 << 16
"""Largest sum of the absolute weights of an output channel."""

WEIGHT_SUM_MAXIMUM_16_BIT_U85 = 127 << 24
"""The same on U85 where the input has 16 bits."""

BIAS_MAXIMUM = {Arch.U55: (1 << 40) - 1, Arch.U65: (1 << 40) - 1, Arch.U85: (1 << 48) - 1}
"""Largest 64-bit bias: it must fit the accumulator's 40 or 48 bits."""

DEPTH_MAXIMUM = 1 << 16
"""Largest depth that weights are applied to."""

INTEGERS = ("INT8", "UINT8", "INT16", "INT32", "INT64")
QUANTIZED = ("INT8", "UINT8", "INT16")
ZERO_POINTS_U85 = {"INT8": range(-128, 128), "UINT8": range(256)}


_QUANTIZE = "quantise it: convert the network with full integer quantisation"
_PER_TENSOR = "use one scale for the whole tensor"
_UNQUANTIZED_TOO = "ARG_MAX EXPAND_DIMS MIRROR_PAD PAD PADV2 QUANTIZE TRANSPOSE"
_UNQUANTIZED_TOO_U85 = (
    "ASSIGN_VARIABLE GATHER READ_VARIABLE REDUCE_ALL REDUCE_ANY SCATTER_ND SELECT SELECT_V2"
)
_PARAMETRISED = (
    "ARG_MAX MEAN MIRROR_PAD PAD PADV2 REDUCE_MAX REDUCE_MIN REVERSE_V2 SLICE STRIDED_SLICE SUM "
    "TILE TRANSPOSE"
)
_EVERY = every_operator_but()


def _tell(tensors: Iterable[TensorFacts]) -> str | None:
    """Tell the type and name of the first tensor, if there is one."""
    tensor = next(iter(tensors), None)
    return None if tensor is None else f"{tensor.dtype} {named(tensor)}"


@rule("boolean", _EVERY, U55_U65).must_have("integer tensors", "compute with int8 values 0 and 1")
def _boolean(operator: OperatorFacts) -> str | None:
    inputs = [tensor for tensor in operator.inputs if tensor is not None]
    return _tell(tensor for tensor in (*inputs, *operator.outputs) if tensor.dtype == "BOOL")


@rule("integer", _EVERY, ALL).must_have(
    f"feature maps of {', '.join(INTEGERS[:-1])} or {INTEGERS[-1]}", _QUANTIZE
)
def _no_integer(operator: OperatorFacts) -> str | None:
    wanted = (*INTEGERS, "BOOL", "RESOURCE")
    return _tell(tensor for tensor in feature_maps(operator) if tensor.dtype not in wanted)


def _of_type(name: str) -> Measure:
    def measure(operator: OperatorFacts) -> str | None:
        return _tell(tensor for tensor in feature_maps(operator) if tensor.dtype == name)

    return measure


@rule("fixed-shape", _EVERY, ALL).must_have(
    "no open extent but the batch", "export the network with fixed shapes"
)
def _open_extent(operator: OperatorFacts) -> str | None:
    inputs = [tensor for tensor in operator.inputs if tensor is not None]
    for tensor in (*inputs, *operator.outputs):
        if -1 in (tensor.shape_signature or ())[1:]:
            return f"{extents(tensor.shape_signature or ())} {named(tensor)}"
    return None


@rule("rank-0", _EVERY, ALL).must_have("feature maps with dimensions", "give it the shape [1]")
def _scalar(operator: OperatorFacts) -> str | None:
    tensors = (*feature_maps(operator), *operator.intermediates)
    return _tell(tensor for tensor in tensors if not tensor.shape and not tensor.constant)


@rule(
    "quantised", every_operator_but(*_UNQUANTIZED_TOO.split(), *_UNQUANTIZED_TOO_U85.split()), ALL
).must_have("a scale for every feature map and for weights", _QUANTIZE)
def _unquantized(operator: OperatorFacts) -> str | None:
    tensors = feature_maps(operator)
    if (weight := weights(operator)) is not None:
        tensors.append(weight)
    return _tell(tensor for tensor in tensors if tensor.dtype in QUANTIZED and not tensor.scales)


@rule("per-axis", every_operator_but(*WEIGHTED), ALL).must_have(
    "one scale for each feature map", _PER_TENSOR
)
def _per_axis(operator: OperatorFacts) -> str | None:
    for tensor in feature_maps(operator):
        if len(tensor.scales) > 1:
            return f"{len(tensor.scales)} scales for {named(tensor)}"
    return None


def _zero_point(operator: OperatorFacts) -> str | None:
    for tensor in feature_maps(operator):
        for zero_point in tensor.zero_points:
            if not _zero_point_fits(tensor.dtype, zero_point, operator.arch):
                return f"{zero_point} for {tensor.dtype} {named(tensor)}"
    return None


def _zero_point_fits(dtype: str, zero_point: int, arch: Arch) -> bool:
    if arch is Arch.U85:
        return zero_point in ZERO_POINTS_U85.get(dtype, range(1))
    if dtype == "INT32":
        return zero_point == 0
    return not dtype.startswith("U") or zero_point >= 0


@rule("constant-parameters", operators(_PARAMETRISED), ALL).must_have(
    "constant parameters (axes, sizes, paddings)",
    "export the network with fixed shapes, so that they become constants",
)
def _parameters(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    for tensor in operator.inputs:
        if tensor is not None and tensor is not data and not tensor.constant:
            return f"{named(tensor)}, which the network computes"
    return None


@rule("weight-type", WEIGHTED, ALL).must_have("weights of 8 bits", "quantise the weights to INT8")
def _weight_type(operator: OperatorFacts) -> str | None:
    weight = weights(operator)
    return None if weight is None or _are_bytes(weight) else weight.dtype


def _are_bytes(weight: TensorFacts) -> bool:
    return weight.dtype in ("INT8", "UINT8")


def _computed_weights(operator: OperatorFacts) -> str | None:
    weight = weights(operator)
    return None if weight is None or weight.constant else f"{named(weight)}, which is computed"


@rule("weight-sum", WEIGHTED, ALL).must_have(
    "a sum of absolute weights in each output channel that the accumulator holds",
    "split it by input channels into several, and add their outputs",
)
def _weight_sum(operator: OperatorFacts) -> str | None:
    weight, data = weights(operator), data_input(operator)
    if weight is None or weight.values is None or data is None or not _are_bytes(weight):
        return None
    wide = operator.arch is Arch.U85 and data.dtype == "INT16"
    largest = WEIGHT_SUM_MAXIMUM_16_BIT_U85 if wide else WEIGHT_SUM_MAXIMUM
    axis = weight.values.ndim - 1 if operator.kind == "DEPTHWISE_CONV_2D" else 0
    found = largest_sum(weight.values, weight.zero_points, axis)
    return None if found <= largest else f"{found}, over {largest}"


def largest_sum(values: npt.NDArray[Any], zero_points: tuple[int, ...], axis: int) -> int:
    """Return the largest sum of absolute weights of an output channel."""
    if not values.size:
        return 0
    zero_point = np.asarray(zero_points or (0,), np.int64)
    rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    if not zero_point.any():
        # The sum of absolute values without a copy as wide as int64.
        return int(np.abs(rows, dtype=np.int16).sum(axis=1, dtype=np.int64).max())
    return int(np.abs(rows - zero_point.reshape(-1, 1)).sum(axis=1).max())


@rule("depth", WEIGHTED, ALL, STOPS).must_have(
    f"at most {DEPTH_MAXIMUM} input channels",
    "split it by input channels into several, and add their outputs",
)
def _depth(operator: OperatorFacts) -> str | None:
    data, weight = data_input(operator), weights(operator)
    if data is None or weight is None or not weight.constant or data.nhwc[3] <= DEPTH_MAXIMUM:
        return None
    return str(data.nhwc[3])


@rule("constant-bias", WEIGHTED, ALL).must_have("a constant bias", "leave the bias out, and ADD it")
def _computed_bias(operator: OperatorFacts) -> str | None:
    tensor = bias(operator)
    return None if tensor is None or tensor.constant else f"{named(tensor)}, which is computed"


@rule("bias-type", WEIGHTED, ALL).must_have("a bias of INT32 or INT64", "quantise the bias again")
def _bias_type(operator: OperatorFacts) -> str | None:
    tensor = bias(operator)
    return None if tensor is None or tensor.dtype in ("INT32", "INT64") else tensor.dtype


@rule("bias-shape", WEIGHTED, ALL).must_have(
    "a bias along its last axis", "give the bias the shape [output channels]"
)
def _bias_shape(operator: OperatorFacts) -> str | None:
    tensor = bias(operator)
    if tensor is None or not tensor.constant or tensor.elements == (tensor.shape or (1,))[-1]:
        return None
    return extents(tensor.shape)


@rule("bias-range", WEIGHTED, ALL).must_have(
    "bias values that the accumulator holds",
    "scale the weights differently, or train with a smaller bias",
)
def _bias_value(operator: OperatorFacts) -> str | None:
    tensor = bias(operator)
    if tensor is None or tensor.values is None or tensor.dtype != "INT64":
        return None
    found, largest = int(tensor.values.max(initial=0)), BIAS_MAXIMUM[operator.arch]
    return None if found <= largest else f"{found}, over {largest}"


_WIDE_TOO = (
    "ADD ARG_MAX BATCH_MATMUL EXPAND_DIMS FULLY_CONNECTED MIRROR_PAD MUL NEG RESHAPE SQUEEZE SUB "
    "SUM TRANSPOSE"
)
_ANY_ZERO_POINT = (
    "AVERAGE_POOL_2D DIV RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR UNIDIRECTIONAL_SEQUENCE_LSTM"
)
_NARROW_ON_U85 = (
    "AVERAGE_POOL_2D CONV_2D DEPTHWISE_CONV_2D EXP LOGISTIC MAX_POOL_2D RELU RELU6 RELU_0_TO_1 "
    "RELU_N1_TO_1 RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SOFTMAX TANH TRANSPOSE_CONV"
)
_NO_64_BIT_ON_U85 = f"ADD DIV MAXIMUM MINIMUM MUL SUB {_NARROW_ON_U85}"

TENSOR_RULES: tuple[Rule, ...] = (
    _boolean,
    _no_integer,
    rule("64-bit", every_operator_but("ARG_MAX"), U55_U65).must_have(
        "feature maps of at most 32 bits", "convert it to INT32 or less"
    )(_of_type("INT64")),
    rule("64-bit-u85", operators(_NO_64_BIT_ON_U85), U85, STOPS).must_have(
        "feature maps of at most 32 bits", "convert it to INT32 or less"
    )(_of_type("INT64")),
    rule("32-bit", every_operator_but(*_WIDE_TOO.split()), U55_U65).must_have(
        "feature maps of at most 16 bits", "quantise it to INT8 or INT16"
    )(_of_type("INT32")),
    rule("32-bit-u85", operators(_NARROW_ON_U85), U85, STOPS).must_have(
        "feature maps of at most 16 bits", "quantise it to INT8 or INT16"
    )(_of_type("INT32")),
    rule("32-bit-matrix", "FULLY_CONNECTED", ALL, STOPS).must_have(
        "feature maps of at most 16 bits", "quantise it to INT8 or INT16"
    )(_of_type("INT32")),
    _open_extent,
    _scalar,
    _unquantized,
    _per_axis,
    rule("zero-point", every_operator_but(*_ANY_ZERO_POINT.split()), U55_U65).must_have(
        "zero points of 0 for INT32, and from 0 for unsigned types", "quantise it again"
    )(_zero_point),
    rule("zero-point-u85", every_operator_but(*_ANY_ZERO_POINT.split()), U85).must_have(
        "zero points in the range of 8-bit types, and of 0 for others",
        "quantise it again; types over 8 bits symmetrically",
    )(_zero_point),
    _parameters,
    _weight_type,
    rule("constant-weights", "CONV_2D DEPTHWISE_CONV_2D", U55_U65, STOPS).must_have(
        "constant weights", "write it as BATCH_MATMUL, which multiplies what is computed"
    )(_computed_weights),
    rule("constant-weights-transposed", "TRANSPOSE_CONV", ALL, STOPS).must_have(
        "constant weights", "make the weights constants"
    )(_computed_weights),
    _weight_sum,
    _depth,
    _computed_bias,
    _bias_type,
    _bias_shape,
    _bias_value,
)
"""Rules that hold for many operators."""
