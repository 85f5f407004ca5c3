"""Paths whose meaning is inferred or only read in sources, never confirmed by a compiled network.

The simulator executes them, and says so the first time a program uses one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Diagnostic, Severity
from mizzen.targets.ethos_u.judge.sim.operations import (
    HWC,
    AccumulatorInput,
    Activation,
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    Function,
    Interpolation,
    MatrixProduct,
    Operation,
    Pool,
    Pooling,
    Resize,
    Tiling,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.rounding import Rounding
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch


@dataclass(frozen=True, slots=True)
class InferredPath:
    """A row: what is inferred, on which architectures, and how an operation is seen to use it."""

    code: str
    archs: tuple[Arch, ...]
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


def _rounds(mode: Rounding) -> Callable[[Operation], bool]:
    return lambda operation: not isinstance(operation, Dma) and operation.output.rounding is mode


def _strided(operation: Operation) -> bool:
    return isinstance(operation, Dma) and operation.rows * operation.planes > 1


def _planar(operation: Operation) -> bool:
    return isinstance(operation, Dma) and operation.planes > 1


def _dilated_pooling(operation: Operation) -> bool:
    if not isinstance(operation, Pooling):
        return False
    return max(operation.kernel.dilation_y, operation.kernel.dilation_x) > 1


def _unsigned_16(operation: Operation) -> bool:
    return any(fm.dtype == np.uint16 for fm in _maps(operation))


def _tall_argmax(operation: Operation) -> bool:
    return isinstance(operation, Pooling) and operation.mode is Pool.ARGMAX_Y


def _replicates(operation: Operation) -> bool:
    return isinstance(operation, Resize) and operation.mode is Interpolation.REPLICATE


def _stacked(operation: Operation) -> bool:
    return any(fm.tiling is Tiling.STACK for fm in _maps(operation))


def _keeps(operation: Operation) -> bool:
    if not isinstance(operation, Convolution | Pooling | MatrixProduct):
        return False
    accumulators = operation.accumulators
    return accumulators.initial is AccumulatorInput.KEPT or not accumulators.written


def _adds_to_map(operation: Operation) -> bool:
    if not isinstance(operation, Convolution | Pooling | MatrixProduct):
        return False
    return operation.accumulators.initial is AccumulatorInput.MAP


def _unseen_table(operation: Operation) -> bool:
    if isinstance(operation, Dma):
        return False
    act: Activation = operation.output.activation
    if act.function is not Function.ENTRIES or act.clip is None:
        return False
    unsigned = act.clip.dtype == np.uint8
    return unsigned or operation.output.fm.dtype.itemsize == 2


def _turned_twice(operation: Operation) -> bool:
    if isinstance(operation, Dma):
        return False
    return operation.output.axes != HWC and operation.output.reversed is not None


def _scaled_average(operation: Operation) -> bool:
    if not (isinstance(operation, Pooling) and operation.divided and operation.output.scale):
        return False
    multiplier, shift = operation.output.scale
    return multiplier != 1 << shift


# fmt: off
INFERRED = (
    InferredPath("N661", ALL, "TRUNCATE rounding, taken as toward zero",
                 _rounds(Rounding.TRUNCATE)),
    InferredPath("N662", U55_U65, "strided DMA, taken as packed at the source", _strided),
    InferredPath("N663", ALL, "dilated pooling, taken as for convolution", _dilated_pooling),
    InferredPath("N664", ALL, "unsigned 16-bit feature maps", _unsigned_16),
    InferredPath("N686", U55_U65, "weights that operations before wrote, read when the "
                 "convolution starts", lambda _: False),
    InferredPath("N665", U85, "a branch, taken to a byte of the same stream", lambda _: False),
    InferredPath("N666", U85, "DMA of several planes, taken with strides at both ends", _planar),
    InferredPath("N667", U85, "ARGMAX_Y, taken like ARGMAX_X", _tall_argmax),
    InferredPath("N668", U85, "RESIZE that replicates, taken as the element at or before a place",
                 _replicates),
    InferredPath("N669", U85, "three stacked tiles, HEIGHT0 and HEIGHT1 taken as the rows where "
                 "the second and the third start", _stacked),
    InferredPath("N680", U85, "accumulators that one operation leaves to the next", _keeps),
    InferredPath("N681", U85, "sums that start from a feature map", _adds_to_map),
    InferredPath("N682", U85, "tables of unsigned bytes, or of 16 bits for bytes", _unseen_table),
    InferredPath("N683", U85, "an output both transposed and reversed, taken to be reversed first",
                 _turned_twice),
    InferredPath("N684", U85, "an average that is scaled, taken to be rounded before it",
                 _scaled_average),
    InferredPath("N685", U85, "DOUBLE_ASYMMETRIC rounding, taken as DOUBLE_SYMMETRIC",
                 _rounds(Rounding.ASYMMETRIC)),
)
# fmt: on
BRANCH = next(path for path in INFERRED if path.code == "N665")
WRITTEN_WEIGHTS = next(path for path in INFERRED if path.code == "N686")


def inferred(operation: Operation, arch: Arch) -> list[Diagnostic]:
    """Return a note for every inferred path that `operation` takes on an architecture."""
    return [
        note(path, operation.where)
        for path in INFERRED
        if arch in path.archs and path.applies(operation)
    ]


def note(path: InferredPath, where: Where) -> Diagnostic:
    """Say that a command takes an inferred path."""
    return Diagnostic(
        path.code,
        f"{where.name}: the meaning of this is inferred: {path.what}",
        Severity.NOTE,
        where.origin,
        help="compare with hardware before you rely on the result",
    )
