"""What the rules need to know about an operator of a network, whatever format it came in.

Operator kinds, element types and option names are those of the TFLite schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt


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
    """An operator; `inputs` has None where an optional input is absent."""

    kind: str
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
