"""What the rules need to know about a TFLite operator, and how a row is made.

Operator kinds, element types and option names are those of the TFLite schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from mizzen.targets import rules
from mizzen.targets.ethos_u.commands import ALL, U85, Arch


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


def axes_of(operator: OperatorFacts, data: TensorFacts) -> list[int] | None:
    """Return the axes that an operator works along, counted from 0; None if they are not known."""
    parameter = operator.input(1)
    if parameter is None or parameter.values is None:
        return None
    rank = max(1, len(data.shape))
    return sorted({int(axis) % rank for axis in parameter.values.reshape(-1)})


def input_type(*wanted: str) -> Measure:
    """Measure whether the first data input has one of some types."""

    def measure(operator: OperatorFacts) -> str | None:
        data = data_input(operator)
        return None if data is None or data.dtype in wanted else data.dtype

    return measure
