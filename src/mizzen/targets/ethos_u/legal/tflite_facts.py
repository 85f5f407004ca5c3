"""What rules ask about a TFLite operator.

Operator kinds, element types and option names are those of the TFLite schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from mizzen.targets.ethos_u.machine.commands import Arch


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
