"""What a machine makes of what a witness says: as U55 and U65 have it, and as U85 has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mizzen.targets.ethos_u.judge.sim.operations import Clip, Function, Pool
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS, Rounding, Scale
from mizzen.targets.ethos_u.judge.witness.witness import (
    SaidActivation,
    SaidElementwise,
    SaidMap,
    SaidOperandScale,
    SaidPooling,
    SaidRounding,
    SaidScale,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    Arch,
    ClipRange,
    ElementwiseMode,
    IfmScaleMode,
    PoolingMode,
)

ROUNDINGS = {
    "DBL": Rounding.DOUBLE,
    "TRUNCATE": Rounding.TRUNCATE,
    "NATURAL": Rounding.NATURAL,
    "DOUBLE_SYMMETRIC": Rounding.DOUBLE,
    "DOUBLE_ASYMMETRIC": Rounding.ASYMMETRIC,
    "SYMMETRIC": Rounding.SYMMETRIC,
    "TRUNCATE_TO_ZERO": Rounding.TRUNCATE,
    "TRUNCATE_TO_LOWER": Rounding.FLOOR,
}
"""By the names that modes have: numbers of U55's and of U85's are others."""
FORCED: dict[ClipRange, np.dtype[np.integer[Any]] | None] = {
    ClipRange.OFM_PRECISION: None,
    ClipRange.FORCE_UINT8: np.dtype(np.uint8),
    ClipRange.FORCE_INT8: np.dtype(np.int8),
    ClipRange.FORCE_INT16: np.dtype(np.int16),
}
GAINED_BITS = {1: 20, 2: 15, 4: 15}
"""Before one of the operands of a sum is rescaled, by bytes of an element.
Ref: TFLite, kernels/add.cc, left_shift."""
UNSCALED = (
    ElementwiseMode.MIN,
    ElementwiseMode.MAX,
    ElementwiseMode.SHL,
    ElementwiseMode.SHR,
    ElementwiseMode.CLZ,
    ElementwiseMode.LRELU,
)
"""Operations whose results have no scale of their own where operands have none of U85's."""
WIDE_BYTES = 4
"""Elements so large are intermediate results: signed, without a zero point, not clipped."""
CLIP_LOW, CLIP_HIGH = -(1 << 15), (1 << 15) - 1
"""Of the registers of bounds, whose 16 bits are unsigned for unsigned results."""

Scales = tuple[Scale | None, Scale | None]


@dataclass(frozen=True, slots=True)
class Pooled:
    """How a machine pools: by its mode; scaled or not, or divided by the elements of a window."""

    mode: Pool
    scale: SaidScale | None
    divided: bool


class Machine(Protocol):
    """What an architecture makes of what is said."""

    accumulator_bits: Mapping[AccFormat, int]
    exchanges: bool
    """Whether inputs change places where the second is the first operand; else it is told."""
    wide_scalars: bool
    """Whether a number that is an operand has 32 bits, not 16."""

    def function(self, ofm: SaidMap, said: SaidActivation) -> Function:
        """Return what follows clipping."""
        ...

    def clip(self, ofm: SaidMap, said: SaidActivation) -> Clip | None:
        """Return how results are clipped."""
        ...

    def pooled(self, said: SaidPooling) -> Pooled:
        """Return how is pooled."""
        ...

    def result_scale(self, said: SaidElementwise) -> SaidScale | None:
        """Return the scale of an elementwise operation's result."""
        ...

    def operand_scales(self, said: SaidElementwise) -> Scales:
        """Return the scales of `ifm` and `ifm2`."""
        ...


class _U55:
    """U55 and U65."""

    accumulator_bits: Mapping[AccFormat, int] = {AccFormat.I32: 32, AccFormat.I40: 40}
    exchanges = False
    wide_scalars = False

    _curves: Mapping[str, Function] = {
        "RELU": Function.NONE,
        "TANH": Function.TANH,
        "SIGMOID": Function.SIGMOID,
    }
    _tables: Mapping[int, Function] = {
        1: Function.ENTRIES,
        2: Function.SEGMENTS,
        4: Function.ENTRIES,
    }
    """By the bytes of an element of the output."""

    def function(self, ofm: SaidMap, said: SaidActivation) -> Function:
        if said.table is None:
            return self._curves[said.function]
        return self._tables[ofm.dtype.itemsize]

    def clip(self, ofm: SaidMap, said: SaidActivation) -> Clip | None:
        assert isinstance(said.clip_range, ClipRange), "U55 has no other"
        ranged = FORCED[said.clip_range]
        if ranged is None and ofm.dtype.itemsize >= WIDE_BYTES:
            return None
        return clipped(ofm, said, ranged or ofm.dtype)

    def pooled(self, said: SaidPooling) -> Pooled:
        divided = said.mode is PoolingMode.AVERAGE and is_padded(said)
        unscaled = said.mode is PoolingMode.MAX or divided
        return Pooled(Pool[said.mode.name], None if unscaled else said.scale, divided)

    def result_scale(self, said: SaidElementwise) -> SaidScale | None:
        return None if said.mode in UNSCALED else shifted_if_wide(said)

    def operand_scales(self, said: SaidElementwise) -> Scales:
        first, second = shared_scales(said)
        return (second, first) if said.reversed else (first, second)


class _U85:
    """U85."""

    accumulator_bits: Mapping[AccFormat, int] = {AccFormat.I32: 32, AccFormat.I40: 48}
    exchanges = True
    wide_scalars = True

    _curves: Mapping[str, Function] = {
        "RELU": Function.NONE,
        "TANH": Function.TABLE_TANH,
        "SIGMOID": Function.TABLE_SIGMOID,
    }
    _indices: Mapping[int, np.dtype[np.integer[Any]]] = {
        512: np.dtype(np.int8),
        1024: np.dtype(np.int8),
        2048: np.dtype(np.int16),
    }
    """What is looked up in a table that is not of bytes alone, by the bytes of the table."""
    _segments_bytes = 2048

    def function(self, ofm: SaidMap, said: SaidActivation) -> Function:
        if said.table is None or (
            len(said.table) == self._segments_bytes and said.function != "RELU"
        ):
            return self._curves[said.function]
        if len(said.table) != self._segments_bytes:
            return Function.ENTRIES
        is_wide = ofm.dtype.itemsize >= WIDE_BYTES
        return Function.SEGMENTS_32 if is_wide else Function.SEGMENTS

    def clip(self, ofm: SaidMap, said: SaidActivation) -> Clip | None:
        forced = FORCED[said.clip_range] if isinstance(said.clip_range, ClipRange) else None
        whole = isinstance(said.clip_range, ClipRange) and forced is None
        function = self.function(ofm, said)
        if function is not Function.NONE:
            return clipped(ofm, said, self._index(ofm, said, forced), forced)
        unbounded = not isinstance(said.clip_range, ClipRange)
        if unbounded or (whole and ofm.dtype.itemsize >= WIDE_BYTES):
            info = np.iinfo(ofm.dtype)
            zero_point = ofm.zero_point if unbounded else 0
            return Clip(zero_point, int(info.min), int(info.max), type_of(ofm.dtype), wraps=True)
        return clipped(ofm, said, type_of(ofm.dtype), forced)

    def _index(
        self, ofm: SaidMap, said: SaidActivation, forced: np.dtype[np.integer[Any]] | None
    ) -> np.dtype[np.integer[Any]]:
        """Return the type of what a function takes."""
        if said.table is None:
            return self._indices[self._segments_bytes]
        return self._indices.get(len(said.table), forced or ofm.dtype)

    def pooled(self, said: SaidPooling) -> Pooled:
        """Return how is pooled; an average over windows that are whole is a scaled sum."""
        if said.mode is PoolingMode.AVERAGE:
            if is_padded(said):
                return Pooled(Pool.AVERAGE, SaidScale(1, 0), divided=True)
            return Pooled(Pool.SUM, said.scale, divided=False)
        return Pooled(Pool[said.mode.name], said.scale, divided=False)

    def result_scale(self, said: SaidElementwise) -> SaidScale | None:
        if said.operand_scales is None and said.mode in UNSCALED:
            return SaidScale(1, 0)
        return shifted_if_wide(said) or SaidScale(1, 0)

    def operand_scales(self, said: SaidElementwise) -> Scales:
        if said.operand_scales is not None:
            first, second = (scale and _own(scale) for scale in said.operand_scales)
        else:
            first, second = shared_scales(said)
            if said.reversed:
                first, second = second, first
        return _changing(first), _changing(second)


def _own(scale: SaidOperandScale) -> Scale:
    bit = DOUBLING_BITS - scale.left
    return Scale(scale.multiplier, scale.shift, rounding_of(scale.rounding), bit)


def _changing(scale: Scale | None) -> Scale | None:
    """Return a scale if it changes anything."""
    return None if scale is None or scale.is_identity else scale


MACHINES: dict[Arch, Machine] = {Arch.U55: _U55(), Arch.U65: _U55(), Arch.U85: _U85()}


def rounding_of(said: SaidRounding) -> Rounding:
    """Return a rounding as the simulator calls it."""
    return ROUNDINGS[said.name]


def type_of(dtype: np.dtype[np.integer[Any]]) -> np.dtype[Any]:
    """Return the type that the machine takes elements to be."""
    return np.dtype(f"i{dtype.itemsize}") if dtype.itemsize >= WIDE_BYTES else dtype


def is_padded(said: SaidPooling) -> bool:
    """Whether some windows reach out of the map."""
    kernel = said.kernel
    return any((kernel.pad_top, kernel.pad_left, kernel.pad_bottom, kernel.pad_right))


def clipped(
    ofm: SaidMap,
    said: SaidActivation,
    ranged: np.dtype[np.integer[Any]],
    forced: np.dtype[np.integer[Any]] | None = None,
) -> Clip:
    """Return the clipping to a type's range and the bounds; `forced` is another range besides."""
    low, high = said.minimum, said.maximum
    if ofm.dtype.itemsize >= WIDE_BYTES:
        low, high = max(CLIP_LOW, low), min(CLIP_HIGH, high)
    for each in (ranged, forced or ranged):
        info = np.iinfo(each)
        low, high = max(low, int(info.min)), min(high, int(info.max))
    return Clip(ofm.zero_point, low, high, ranged)


def shifted_if_wide(said: SaidElementwise) -> SaidScale | None:
    """Return the scale of a result; products of 32 bits are shifted alone."""
    if (
        said.scale is not None
        and said.mode is ElementwiseMode.MUL
        and said.ifm.dtype.itemsize >= WIDE_BYTES
    ):
        return SaidScale(1, said.scale.shift)
    return said.scale


def shared_scales(said: SaidElementwise) -> Scales:
    """Return the scales of the first operand and of the second, as both machines have them."""
    if said.mode is ElementwiseMode.LRELU and said.scale is not None:
        scale = Scale(said.scale.multiplier, said.scale.shift, rounding_of(said.rounding))
        return None, scale
    is_sum = said.mode in (ElementwiseMode.ADD, ElementwiseMode.SUB)
    if not is_sum or said.scale_a is None:
        return None, None
    rounding, gained = rounding_of(said.ifm_rounding), GAINED_BITS[said.ifm.dtype.itemsize]
    a = said.scale_a
    full = Scale(a.multiplier, a.shift, rounding, DOUBLING_BITS - gained)
    plain = Scale(1 << (gained - 1), 0, rounding)
    match said.scale_mode:
        case IfmScaleMode.OPA_32:
            return full, plain
        case IfmScaleMode.OPB_32:
            return plain, full
        case _:
            second = None if said.scale_b is None else Scale(said.scale_b.multiplier, 0, rounding)
            return Scale(a.multiplier, 0, rounding), second
