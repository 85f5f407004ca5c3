"""Functions of each number: tables.

An 8-bit table has an entry for each of the 256 integers, so it gives what the function gives,
exactly. For 16 bits see `tables`. Ref: TOSA 1.0, 2.4.14 TABLE.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.frontends.quantized.scales import rescale, typed
from mizzen.frontends.quantized.tables import STEP, tables_of, wide_table, wide_target
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value
from mizzen.ops import Builder

Function = Callable[[Array], Array]
"""Returns real results of real numbers."""

Steps = Callable[[Array, Target], Array]
"""Returns real numbers in steps of a target's scale."""


def in_steps(reals: Array, target: Target) -> Array:
    """Return numbers in steps of a scale, as PyTorch does: times its inverse, in float32.

    What is never a number has no place on the NPU: it becomes zero.
    """
    scaled = reals.astype(np.float32) * np.float32(1.0 / target.scale)
    return np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9)


def function_of(
    b: Builder, x: Real, function: Function, target: Target, steps: Steps = in_steps
) -> Value:
    """Add the table of a function.

    8 bits come out as they go in, exactly, or as 16 bits, rounded once.

    steps  how the front-end's quantiser brings real numbers to a scale
    """

    def curve(integers: Array, grid: Target) -> Array:
        return steps(continued(function(reals_of(x, integers))), grid)

    match x.value.dtype, target.dtype:
        case DType.INT8, DType.INT8:
            entries = _rounded(curve(np.arange(-128, 128), target), target)
            return narrow_table(b, x, entries, target)
        case DType.INT8, DType.INT16:
            # Each of the 8-bit integers has an entry of the 16-bit table.
            spread = Real(rescale(b, x.value, STEP, DType.INT16, (x.zero_point, 0)))
            places = np.arange(-256, 257)
            entries = curve((places + x.zero_point).clip(-128, 127), wide_target(target))
            tables = tables_of(lambda points: np.interp(points / STEP, places, entries), target)
            return wide_table(b, spread, tables, target)
        case DType.INT16, DType.INT8 | DType.INT16:
            wide = wide_target(target)
            return wide_table(b, x, tables_of(lambda points: curve(points, wide), target), target)
        case given, wanted:
            raise RefusedError(f"no table takes {given.value} and gives {wanted.value}")


def narrow_table(b: Builder, x: Real, entries: Array, target: Target) -> Value:
    """Add a table of 8 bits, of 256 entries on the target's scale."""
    return typed(b("TABLE", x.value, b.constant(entries, DType.INT8)), target)


def reals_of(x: Real, integers: Array) -> Array:
    """Return the real numbers that integers stand for, in float32 as PyTorch computes them."""
    return (integers - x.zero_point).astype(np.float32) * np.float32(x.scale)


def continued(reals: Array) -> Array:
    """Let what is not a number be the nearest entry of a table that is one.

    So the edge of a function's domain is right though the integer next to it stands for a number
    beyond: acos(-1) where -1 is rounded to -1.004.
    """
    places = np.arange(reals.size)
    known = places[~np.isnan(reals)]
    if not known.size or known.size == reals.size:
        return reals
    after = np.searchsorted(known, places).clip(0, known.size - 1)
    before = (after - 1).clip(0)
    nearer = np.abs(known[before] - places) < np.abs(known[after] - places)
    return reals[np.where(nearer, known[before], known[after])]


def _rounded(steps: Array, target: Target) -> Array:
    """Return integers of a target: half to even, clamped."""
    low, high = target.bounds
    shifted = np.rint(steps) + target.zero_point
    return np.clip(shifted, low, high).astype(np.int64)
