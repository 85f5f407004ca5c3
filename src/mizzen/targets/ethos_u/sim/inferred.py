"""Paths whose meaning is inferred or only read in sources, never confirmed by a compiled network.

The simulator executes them, and says so the first time a program uses one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Diagnostic, Severity
from mizzen.targets.ethos_u.sim.operations import (
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    MatrixProduct,
    Operation,
    Pooling,
    Resize,
)
from mizzen.targets.ethos_u.sim.rounding import Rounding


@dataclass(frozen=True, slots=True)
class InferredPath:
    """A row: what is inferred, and how an operation is seen to use it."""

    code: str
    what: str
    applies: Callable[[Operation], bool]


def _maps(operation: Operation) -> list[FeatureMap]:
    match operation:
        case Convolution() | Pooling() | Resize():
            return [operation.ifm, operation.output.fm]
        case MatrixProduct():
            return [operation.ifm, operation.weights, operation.output.fm]
        case Elementwise():
            return [*operation.maps, operation.output.fm]
        case Dma():
            return []


def _truncates(operation: Operation) -> bool:
    return not isinstance(operation, Dma) and operation.output.rounding is Rounding.TRUNCATE


def _strided(operation: Operation) -> bool:
    return isinstance(operation, Dma) and operation.rows * operation.planes > 1


def _dilated_pooling(operation: Operation) -> bool:
    if not isinstance(operation, Pooling):
        return False
    return max(operation.kernel.dilation_y, operation.kernel.dilation_x) > 1


def _unsigned_16(operation: Operation) -> bool:
    return any(fm.dtype == np.uint16 for fm in _maps(operation))


INFERRED = (
    InferredPath("N661", "TRUNCATE rounding, taken as toward zero", _truncates),
    InferredPath("N662", "strided DMA, taken as packed at the source", _strided),
    InferredPath("N663", "dilated pooling, taken as for convolution", _dilated_pooling),
    InferredPath("N664", "unsigned 16-bit feature maps", _unsigned_16),
)


def inferred(operation: Operation) -> list[Diagnostic]:
    """Give a note for every inferred path that `operation` takes."""
    return [
        Diagnostic(
            row.code,
            f"{operation.where.name}: the meaning of this is inferred: {row.what}",
            Severity.NOTE,
            operation.where.origin,
            help="compare with hardware before you rely on the result",
        )
        for row in INFERRED
        if row.applies(operation)
    ]
