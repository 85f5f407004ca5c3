"""What becomes of sums on their way out: RESCALE, CLAMP and TABLE as one NPU operation does them.

The NPU scales, adds the zero point, clips, looks up: so RESCALE, CLAMPs and TABLEs behind each
other are one finish. What is behind a first 8-bit result is a function of 256 integers, and becomes
one table whatever it is made of.

Ref: TOSA 1.0, 2.13.2 RESCALE (rounding as in `apply_scale_32`), 2.4.1 CLAMP, 2.5.17 TABLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Operation, RoundingMode, Value, integer_range
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Reshape
from mizzen.ops.elementwise import Clamp
from mizzen.ops.elementwise import Table as TableOperation
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.targets.ethos_u.generator.lower.functions import (
    ARITHMETIC,
    function_behind,
    given,
    values_of,
)
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.scaling import number, numbers, rescaled
from mizzen.targets.ethos_u.generator.operations import Activation, Scale, Table
from mizzen.targets.ethos_u.machine.commands_values import ClipRange, RoundMode

Int64 = npt.NDArray[np.int64]

MOST_SHIFT = 63
"""Shifts have 6 bits."""

WIDE = (DType.INT32, DType.INT48)
"""Types of sums."""

EVERY = np.arange(-128, 128, dtype=np.int64)
"""The integers that a table has entries for."""

NARROW_RANGE = (-32768, 32767)
"""Bounds of results of 32 bits, which are not clipped: what the registers can hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """Scales (one or one for each channel), zero point, bounds, table of one operation.

    dtype    type of what is stored
    entries  of the table, int64 [256] by integer; None without one
    segments base and slope of the 512 lines of a table of 16 bits
    """

    dtype: DType
    multipliers: Int64
    shifts: Int64
    rounding: RoundMode
    zero_point: int
    low: int
    high: int
    entries: Int64 | None = None
    segments: npt.NDArray[np.int16] | None = None

    @property
    def is_identity(self) -> bool:
        """Whether sums are stored as they are."""
        return bool((self.multipliers == 1).all() and not self.shifts.any())

    @property
    def scale(self) -> Scale:
        """The scale that all channels share; refused where each has its own."""
        need(len(self.multipliers) == 1, "its channels have scales of their own")
        return Scale(int(self.multipliers[0]), int(self.shifts[0]))

    @property
    def activation(self) -> Activation:
        """Clip and table."""
        table = None
        if self.entries is not None:
            table = table_of(self.entries)
        elif self.segments is not None:
            table = Table(self.segments.tobytes())
        return Activation(self.low, self.high, table, "RELU", ClipRange.OFM_PRECISION)


def table_of(entries: Int64) -> Table:
    """Return a table of 256 integers of 8 bits, the entry of -128 first; equal ones are one."""
    return Table(entries.astype(np.int8).tobytes())


def plain(dtype: DType, zero_point: int = 0) -> Finish:
    """Return the finish that changes nothing."""
    low, high = NARROW_RANGE if dtype in WIDE else integer_range(dtype)
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    return Finish(dtype, one, none, RoundMode.NATURAL, zero_point, low, high)


def chain(value: Value, outputs: Sequence[Value], *, functions: bool) -> list[Operation]:
    """Return the operations that end in a value and can be the finish of another, first one first.

    Each but the last has one user, and is no output.

    functions  whether sums and products of an integer of 8 bits and a constant are among them
    """
    found: list[Operation] = []
    while True:
        operation = value.producer
        if found and not is_alone(value, outputs):
            break
        behind = function_behind(value, outputs) if functions else []
        if behind:
            found += reversed(behind)
            value = given(behind[0])
            continue
        if not isinstance(operation, FINISHING):
            break
        found.append(operation)
        value = operation.operand
    return found[::-1]


FINISHING = (Rescale, Clamp, TableOperation, Identity, Reshape, Cast)


def is_alone(value: Value, outputs: Sequence[Value]) -> bool:
    """Whether one operation takes a value, once, and nobody else."""
    return sum(value.uses.values()) == 1 and value not in outputs


def finish_of(steps: Sequence[Operation], root: Value, *, scales: bool) -> Finish:
    """Return what operations behind each other do to `root`, as one finish.

    scales  whether the operation that gives `root` can scale what it gives: a first RESCALE is
            its scale then, else part of a table

    Refused where there is none.
    """
    need(root.dtype.is_integer, f"it gives {root.dtype.value}")
    found = plain(root.dtype)
    scaled, fresh = not scales, True
    wide = root.dtype in WIDE
    place = 0
    while place < len(steps):
        step = steps[place]
        place += 1
        match step:
            case Identity() | Reshape():
                continue
            case _ if found.dtype is DType.INT8 and is_inside(steps, place):
                found, place = _composed(found, steps, place)
            case Cast() if fresh and not scaled:
                need(_widens(step), "it converts to a narrower type")
                found = plain(step.result.dtype)
            case Rescale() if wide and fresh and _passes(step):
                found = plain(DType.INT32)
                continue
            case Rescale() if fresh and not scaled:
                found, scaled = _rescaled(step), True
            case TableOperation() if found.dtype is DType.INT16:
                found, place = _lines(found, steps, place), place + 1
            case _:
                found = _looked_up(found, step)
        fresh = False
    return found


def _widens(step: Cast) -> bool:
    order = [DType.INT8, DType.INT16, DType.INT32]
    before, after = step.input.dtype, step.result.dtype
    return before in order and after in order and order.index(before) <= order.index(after)


def _passes(step: Rescale) -> bool:
    """Whether a RESCALE from sums to sums changes nothing."""
    exact = bool((numbers(step.multiplier) == np.int64(1) << numbers(step.shift)).all())
    zeros = not number(step.input_zp) and not number(step.output_zp)
    return exact and zeros and step.result.dtype is DType.INT32


def _rescaled(step: Rescale) -> Finish:
    """Return a RESCALE of sums; zero points of what it takes are the operation's business."""
    need(not (step.input_unsigned or step.output_unsigned), "it takes integers as unsigned")
    multipliers, shifts = numbers(step.multiplier), numbers(step.shift)
    need(int(shifts.max()) <= MOST_SHIFT, "its shift has more than 6 bits")
    exact = multipliers == np.int64(1) << shifts
    multipliers = np.where(exact, 1, multipliers)
    shifts = np.where(exact, 0, shifts)
    dtype = step.result.dtype
    low, high = NARROW_RANGE if dtype in WIDE else integer_range(dtype)
    zero = number(step.output_zp)
    need(dtype not in WIDE or not zero, "its 32-bit result has a zero point")
    return Finish(dtype, multipliers, shifts, rounding_of(step), zero, low, high)


def rounding_of(step: Rescale) -> RoundMode:
    """Return the NPU's word for how a RESCALE rounds; where TOSA leaves a choice, once."""
    double = step.rounding_mode is RoundingMode.DOUBLE_ROUND
    return RoundMode.DBL if double else RoundMode.NATURAL


def is_inside(steps: Sequence[Operation], place: int) -> bool:
    """Whether what is before `place` ends within a function of an integer of 8 bits."""
    if not place or steps[place - 1].result.dtype is DType.INT8:
        return False
    for step in steps[place:]:
        if isinstance(step, ARITHMETIC):
            return True
        if step.result.dtype is DType.INT8:
            return False
    return isinstance(steps[place - 1], ARITHMETIC)


def _composed(found: Finish, steps: Sequence[Operation], place: int) -> tuple[Finish, int]:
    """Return a finish with a function that begins before `place`, and the place after its end."""
    ends = (end for end in range(place, len(steps)) if steps[end].result.dtype is DType.INT8)
    end = next(ends, None)
    need(end is not None, "its function gives more than 8 bits")
    assert end is not None
    entries = EVERY if found.entries is None else found.entries
    composed = values_of(steps[place - 1 : end + 1], entries)
    reached = slice(found.low + 128, found.high + 129)
    if found.entries is None and (composed[reached] == EVERY[reached]).all():
        return found, end + 1
    return replace(found, entries=composed), end + 1


def _looked_up(found: Finish, step: Operation) -> Finish:
    """Return a finish with one more function of an 8-bit result."""
    if isinstance(step, Clamp) and found.entries is None and found.segments is None:
        need(found.dtype in (DType.INT8, DType.INT16), "it clamps sums")
        low, high = max(found.low, int(step.min_val)), min(found.high, int(step.max_val))
        need(low <= high, "its bounds leave no value")
        return replace(found, low=low, high=high)
    need(found.dtype is DType.INT8, "it is a function of more than 8 bits")
    need(step.result.dtype is DType.INT8, "its table would give more than 8 bits")
    entries = EVERY if found.entries is None else found.entries
    match step:
        case Clamp():
            entries = np.clip(entries, int(step.min_val), int(step.max_val))
        case TableOperation():
            entries = numbers(step.table)[entries + 128]
        case Rescale():
            entries = rescaled(step, entries)
        case _:
            need(False, f"{step.kind} is no function of one integer")
    low, high = found.low, found.high
    return replace(found, entries=entries, low=low, high=high)


LINES = 512
FRACTION_BITS = 7
"""Lines of a table of 16 bits, and bits of an integer that say where on its line it is."""


def _lines(found: Finish, steps: Sequence[Operation], place: int) -> Finish:
    """Return a table of 16 bits and the RESCALE behind it, which takes 7 bits off, as one."""
    need(found.entries is None and found.segments is None, "it has two tables of 16 bits")
    need(place < len(steps), "its table gives 32 bits")
    table, behind = steps[place - 1], steps[place]
    assert isinstance(table, TableOperation)
    need(isinstance(behind, Rescale), "its table gives 32 bits")
    assert isinstance(behind, Rescale)
    multiplier, shift = number(behind.multiplier), number(behind.shift)
    zeros = not number(behind.input_zp) and not number(behind.output_zp)
    exact = multiplier << FRACTION_BITS == 1 << shift
    need(exact and zeros, "its table is scaled by more than its fraction")
    need(behind.result.dtype is DType.INT16, "its table gives other than 16 bits")
    entries: npt.NDArray[Any] = numbers(table.table)
    slopes = np.diff(entries)
    need(int(np.abs(slopes).max()) < 1 << 15, "a line of its table is too steep")
    need(_ties_agree(behind, entries, slopes), "its table rounds otherwise")
    segments = np.stack([entries[:-1], slopes], axis=1).astype(np.int16)
    return replace(found, segments=segments)


def _ties_agree(behind: Rescale, entries: Int64, slopes: Int64) -> bool:
    """Whether the RESCALE rounds every value of the lines half up, as the NPU does."""
    steps = np.arange(1 << FRACTION_BITS)
    wide = (entries[:-1, None] << FRACTION_BITS) + slopes[:, None] * steps
    up = entries[:-1, None] + ((slopes[:, None] * steps + 64) >> FRACTION_BITS)
    return bool((rescaled(behind, wide) == np.clip(up, *integer_range(DType.INT16))).all())
