"""Operations as U85 has them, of those that say what U55 and U65 have."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Chain,
    Computation,
    Copy,
    Elementwise,
    Map,
    OperandScale,
    Operation,
    Pooling,
    Rounding,
    Scalar,
    Scale,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRange,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    PoolingMode,
    PoolingModeU85,
    RoundMode,
)
from mizzen.targets.ethos_u.machine.curves import SIGMOID

ONE = Scale(1, 0)
DIVIDED = Scale(1 << 30, 30)
"""What Vela 5.2 writes where a pool divides by the elements of its window: the quotient as it is,
in as many bits as there are for it."""
LEFT_BITS = {1: 20, 2: 15, 4: 15}
"""Bits by which U55 shifts an operand left before it scales it, by the bytes of an element."""
UNSCALED = (
    ElementwiseMode.MIN,
    ElementwiseMode.MAX,
    ElementwiseMode.SHL,
    ElementwiseMode.SHR,
    ElementwiseMode.CLZ,
    ElementwiseMode.LRELU,
)
"""Operations of U55 that have no output scale."""
LARGEST_CURVE = {"SIGMOID": SIGMOID[-2], "TANH": SIGMOID[-1]}
"""What U55's functions give from the last point on."""


def in_u85_form(operation: Operation) -> Operation:
    """Return what computes the same on U85. E287 for an operand's rounding that it has not."""
    match operation:
        case Copy():
            return operation
        case Chain(links=links):
            return Chain(tuple(map(_form, links)))
        case _:
            return _form(operation)


def _form(operation: Computation) -> Computation:
    common = {
        "ifm": _unbiased(operation.ifm),
        "ofm": _result(operation.ofm, operation.activation),
        "activation": _with_table(operation.activation),
    }
    match operation:
        case Pooling():
            return replace(_pooling(operation), **common)
        case Elementwise():
            return replace(_elementwise(operation), **common)
        case _:
            return replace(operation, **common)


def _unbiased(map_: Map) -> Map:
    """Return a map without a zero point that U55 does not take off."""
    return replace(map_, zero_point=0) if map_.dtype.itemsize >= 4 else map_


def _result(ofm: Map, activation: Activation) -> Map:
    is_whole = activation.table is None and activation.clip_range is ClipRange.OFM_PRECISION
    return _unbiased(ofm) if is_whole else ofm


def _with_table(activation: Activation) -> Activation:
    if activation.table is not None or activation.function not in LARGEST_CURVE:
        return activation
    return replace(activation, table=_curve(activation.function))


@lru_cache(maxsize=2)
def _curve(function: str) -> Table:
    """Return base and slope of 256 segments below zero and as many above, int16 each."""
    largest = LARGEST_CURVE[function]
    above = np.minimum([*SIGMOID, SIGMOID[-1]], largest) - SIGMOID[0]
    points = np.concatenate((-above[:0:-1], above))
    pairs = np.stack((points[:-1], np.diff(points)), axis=1)
    return Table(pairs.astype("<i2").tobytes())


def _pooling(operation: Pooling) -> Pooling:
    if operation.mode is not PoolingMode.AVERAGE:
        return operation
    if any(operation.kernel.pads):
        return replace(operation, scale=DIVIDED, rounding=RoundMode.NATURAL)
    return replace(operation, mode=PoolingModeU85.SUM)


def _elementwise(operation: Elementwise) -> Elementwise:
    scale = operation.scale or ONE
    second, scales = operation.ifm2, operation.operand_scales
    if scales is None:
        scales = _operand_scales(operation)
        if isinstance(operation.mode, ElementwiseMode) and operation.mode in UNSCALED:
            scale = ONE
    if isinstance(second, Map):
        second = _unbiased(second)
    elif second is not None and second.dtype.itemsize >= 4:
        second = Scalar(second.value, second.dtype)
    return replace(operation, ifm2=second, scale=scale, operand_scales=scales)


def _operand_scales(operation: Elementwise) -> tuple[OperandScale | None, OperandScale | None]:
    """Return the scales of the two inputs, whichever is the first operand."""
    first, second = None, None
    match operation.mode:
        case ElementwiseMode.LRELU:
            slope = operation.scale or ONE
            second = _operand_scale(slope, operation.rounding, operation.origin)
        case ElementwiseMode.ADD | ElementwiseMode.SUB:
            first, second = _sum_scales(operation)
        case ElementwiseMode() | ElementwiseModeU85():
            pass
    return (second, first) if operation.reversed else (first, second)


def _sum_scales(operation: Elementwise) -> tuple[OperandScale, OperandScale]:
    """Return the scales of the two operands of a sum."""
    rounding, origin = operation.ifm_rounding, operation.origin
    a, b = operation.scale_a or ONE, operation.scale_b or ONE
    if operation.scale_mode is IfmScaleMode.OPA_OPB_16:
        return (
            _operand_scale(Scale(a.multiplier, 0), rounding, origin),
            _operand_scale(Scale(b.multiplier, 0), rounding, origin),
        )
    left = LEFT_BITS[operation.ifm.dtype.itemsize]
    fine = replace(_operand_scale(a, rounding, origin), left=left)
    coarse = OperandScale(1 << (left - 1), 0)
    return (fine, coarse) if operation.scale_mode is IfmScaleMode.OPA_32 else (coarse, fine)


def _operand_scale(scale: Scale, rounding: Rounding, origin: Origin) -> OperandScale:
    if not isinstance(rounding, RoundMode) or rounding is RoundMode.TRUNCATE:
        raise fail(
            "E287",
            f"an operand of U85 must be rounded to the nearest, not by {rounding.name}",
            origin=origin,
        )
    return OperandScale(scale.multiplier, scale.shift, rounding)
