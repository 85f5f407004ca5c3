"""Functions of 16-bit numbers: one table, or a sum of tables where one is too coarse.

A 16-bit table has an entry for every 128th integer, with straight lines between. Where these leave
a function by more than `TOLERANCE`, next to a pole or a bend, further tables with closer entries
take over. Each sees the integers of its own span, enlarged, and all others as the end of the span
that is nearer, for RESCALE saturates; so it is constant outside, and the first table is constant
inside. The sum of all is the function.

Ref: TOSA 1.0, 2.4.14 TABLE, 2.10.2 RESCALE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mizzen.frontends.quantized.scales import clamped, requantize, rescale, typed
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, Value, integer_range
from mizzen.ops import Builder

STEP = 128
"""Distance of the integers that a 16-bit table has entries for."""

FRACTION_BITS = 7
"""Bits of fraction in what a 16-bit table gives."""

TOLERANCE = 1.0
"""By how many steps of the result straight lines may leave the function.

An entry and the interpolation are rounded by half a step each, so a table is off by 2
steps, and by 2 at most from the function rounded, which is half a step off itself.
"""

TABLES_MAXIMUM = 24
"""Further tables. A function that takes more, one of many jumps, is not worth its place there."""

LEAST, GREATEST = integer_range(DType.INT16)
SLOPE_MAXIMUM = GREATEST
"""Most by which an entry may differ from the next. Ref: TOSA 1.0, TABLE."""

HALF = 256
"""Index of the entry for the middle of a span."""

LARGEST_SPAN = 2 * HALF - 2
"""Entries that a span may have: both ends of the table are constant."""

Function = Callable[[Array], Array]
"""Returns real results, in steps of the table's entries, for integers of its input."""


@dataclass(frozen=True, eq=False)
class Span:
    """A table that changes for integers from `first` to `last`, multiples of `STEP`.

    spacing  distance of the integers that it has entries for, a power of two up to `STEP`
    entries  integers, 513
    """

    first: int
    last: int
    spacing: int
    entries: Array

    @property
    def middle(self) -> int:
        """The integer whose entry is in the middle."""
        return (self.first + self.last) // 2


@dataclass(frozen=True, eq=False)
class Tables:
    """A function of 16-bit integers as a sum of tables.

    offset   what is added to them where sums have 32 bits; None where 16 are enough
    """

    spans: tuple[Span, ...]
    offset: int | None


def wide_target(target: Target) -> Target:
    """Return the 16-bit integers that a table's entries are."""
    scale = target.scale if target.dtype is DType.INT16 else target.scale / STEP
    return Target(DType.INT16, Quantization((scale,), (0,)), LEAST, GREATEST)


def wide_table(b: Builder, x: Real, tables: Tables, target: Target) -> Value:
    """Add the tables of a function of 16-bit numbers, and their sum."""
    scale = wide_target(target).scale
    unclamped = Target(target.dtype, target.quantization, *integer_range(target.dtype))
    if len(tables.spans) == 1:
        sums = _span(b, x.value, tables.spans[0])
        value = requantize(b, sums, scale / (1 << FRACTION_BITS), unclamped)
        return clamped(b, value, target)
    parts = [
        rescale(b, _span(b, x.value, span), 2.0**-FRACTION_BITS, DType.INT16)
        for span in tables.spans
    ]
    total = _sum(b, parts) if tables.offset is None else _wide_sum(b, parts, tables.offset)
    return typed(requantize(b, total, scale, target), target)


def _span(b: Builder, value: Value, span: Span) -> Value:
    if span.middle:
        middle = b.constant(np.full((1,) * value.type.rank, span.middle), DType.INT16)
        left, right = (rescale(b, each, 1.0, DType.INT32) for each in (value, middle))
        value = b("SUB", left, right)
    if span.spacing < STEP:
        value = rescale(b, value, STEP / span.spacing, DType.INT16)
    return b("TABLE", value, b.constant(span.entries, DType.INT16))


def _sum(b: Builder, values: Sequence[Value]) -> Value:
    """Add in 16 bits, which Ethos-U55 does in one operation each."""
    total, *rest = values
    for value in rest:
        left, right = (rescale(b, each, 1.0, DType.INT32) for each in (total, value))
        total = rescale(b, b("ADD", left, right), 1.0, DType.INT16)
    return total


def _wide_sum(b: Builder, values: Sequence[Value], offset: int) -> Value:
    """Add in 32 bits, where sums of the first tables leave 16."""
    total, *rest = (rescale(b, each, 1.0, DType.INT32) for each in values)
    for value in rest:
        total = b("ADD", total, value)
    constant = b.constant(np.full((1,) * total.type.rank, offset), DType.INT32)
    return b("ADD", total, constant) if offset else total


def tables_of(function: Function, target: Target) -> Tables:
    """Return the tables of a function of 16-bit integers. RefusedError where they are too many."""
    wide = wide_target(target)
    low, high = wide.bounds
    curve = np.clip(function(np.arange(LEAST, GREATEST + 2)), low, high)
    tolerance = TOLERANCE * target.scale / wide.scale
    places = list(_places(curve, tolerance))
    if len(places) > TABLES_MAXIMUM:
        raise RefusedError(
            f"it takes {len(places)} tables of 16 bits next to its bends and jumps, and "
            f"{TABLES_MAXIMUM} are the most",
            "quantise it to 8 bits, whose table has every integer",
        )
    return _joined(np.rint(curve).astype(np.int64), places)


def _places(curve: Array, tolerance: float) -> Iterator[tuple[int, int, int]]:
    """Return first and last index and spacing of each span that takes a table of its own."""
    bent = np.flatnonzero(_bends(curve, 0, STEP) > tolerance) * STEP
    while bent.size:
        first = int(bent[0])
        reaches = {
            spacing: _reach(curve, first, spacing, tolerance)
            for spacing in (64, 32, 16, 8, 4, 2, 1)
        }
        spacing = max(reaches, key=lambda each: (reaches[each], each))
        last = int(bent[bent < reaches[spacing]][-1]) + STEP
        yield first, last, spacing
        bent = bent[bent >= last]


def _bends(curve: Array, first: int, spacing: int) -> Array:
    """Return how far each line of a table leaves the curve, from an index on."""
    count = (curve.size - 1 - first) // spacing
    ends = curve[first : first + count * spacing + 1 : spacing]
    inside = curve[first : first + count * spacing].reshape(count, spacing)
    part = np.arange(spacing) / spacing
    lines = ends[:-1, None] + np.diff(ends)[:, None] * part
    return np.abs(inside - lines).max(axis=1)


def _reach(curve: Array, first: int, spacing: int, tolerance: float) -> int:
    """Return the index up to which a table of a spacing follows the curve."""
    size = min(first + LARGEST_SPAN * spacing, curve.size - 1)
    part = curve[first : size + 1]
    bent = np.flatnonzero(_bends(part, 0, spacing) > tolerance)
    count = int(bent[0]) if bent.size else (size - first) // spacing
    return first + count * spacing // STEP * STEP


def _joined(curve: Array, places: Sequence[tuple[int, int, int]]) -> Tables:
    """Return tables whose sum is the curve, integers."""
    changes, offset, spans = np.diff(curve[::STEP]), int(curve[0]), list[Span]()
    for first, last, spacing in places:
        changes[first // STEP : last // STEP] = 0
        integers = (first + last) // 2 + (np.arange(2 * HALF + 1) - HALF) * spacing
        entries, middle = _centred(curve[integers.clip(first, last)] - curve[first])
        spans += [Span(first + LEAST, last + LEAST, spacing, part) for part in _parts(entries)]
        offset += middle
    lines = np.append(0, np.cumsum(changes))
    entries, middle = _centred(lines + offset)
    whole = [Span(LEAST, GREATEST + 1, STEP, part) for part in _parts(entries)]
    if not middle and _fits([*whole, *spans]):
        return Tables((*whole, *spans), None)
    return Tables((*whole, *spans), middle)


def _centred(entries: Array) -> tuple[Array, int]:
    """Return entries of 16 bits if they can be, and what is missing from them."""
    if _in_16_bits(entries):
        return entries, 0
    middle = (int(entries.min()) + int(entries.max()) + 1) // 2
    return entries - middle, middle


def _parts(entries: Array) -> Iterator[Array]:
    """Return tables of 16 bits that sum to `entries`, and are not too steep."""
    while not _in_16_bits(entries):
        part = entries.clip(LEAST, GREATEST)
        yield from _gentle(part)
        entries = entries - part
    yield from _gentle(entries)


def _gentle(entries: Array) -> list[Array]:
    """Return tables that sum to `entries` and are not too steep: a pole goes from end to end."""
    count = -(-int(np.abs(np.diff(entries)).max()) // SLOPE_MAXIMUM)
    if count <= 1:
        return [entries]
    ends = [entries * part // count for part in range(count + 1)]
    return [later - before for before, later in pairwise(ends)]


def _fits(spans: Sequence[Span]) -> bool:
    """Whether no sum leaves 16 bits, for any integer."""
    integers = np.arange(LEAST, GREATEST + 1)
    total = np.zeros_like(integers)
    for span in spans:
        enlarged = (integers - span.middle) * (STEP // span.spacing)
        total += _looked_up(span.entries, enlarged.clip(LEAST, GREATEST))
        if not _in_16_bits(total):
            return False
    return True


def _in_16_bits(integers: Array) -> bool:
    return bool(integers.min() >= LEAST and integers.max() <= GREATEST)


def _looked_up(entries: Array, integers: Array) -> Array:
    """Return the results of a table, rounded to its entries' unit."""
    index, part = np.divmod(integers - LEAST, STEP)
    lines = (entries[index] << FRACTION_BITS) + (entries[index + 1] - entries[index]) * part
    return (lines + STEP // 2) >> FRACTION_BITS
