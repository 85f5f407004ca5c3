"""From accumulators to elements: scale, round, add the zero point, clip, apply the function.

The last stage of every kernel. What is fixed for an operation is prepared once; a call works on
one block of accumulators in a few passes over memory that stays in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.targets.ethos_u.sim import activation
from mizzen.targets.ethos_u.sim.memory import Workspace
from mizzen.targets.ethos_u.sim.operations import Activation, FeatureMap, Function, Where
from mizzen.targets.ethos_u.sim.rounding import INT32_LIMIT, Scaling

Array = npt.NDArray[Any]

INNER_LOOP = 64
"""Below this many channels, per-channel constants are repeated along a row to keep loops long."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Zero point and bounds of a result that is clipped."""

    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]


def clip_of(fm: FeatureMap, act: Activation) -> Clip | None:
    """Give the clipping of an operation; None for 32-bit results, which are stored as they are.

    Bounds are those of the registers, within the type that is stored or forced.
    """
    dtype = act.forced or (fm.dtype if fm.dtype.itemsize <= 2 else None)
    if dtype is None:
        return None
    info = np.iinfo(dtype)
    low, high = act.minimum, act.maximum
    if info.min == 0:  # the registers' 16 bits are unsigned then
        low, high = low & 0xFFFF, high & 0xFFFF
    return Clip(fm.zero_point, max(low, int(info.min)), min(high, int(info.max)), dtype)


class Finish:
    """Turns accumulators into elements of the output feature map.

    fm, act      the output and its activation
    scaling      multiplier and shift, or None where the operation does not scale
    bound        largest absolute value the accumulators can have
    table        lookup table for `Function.TABLE`
    """

    def __init__(
        self,
        fm: FeatureMap,
        act: Activation,
        scaling: Scaling | None,
        bound: int,
        table: npt.NDArray[np.uint8] | None,
        workspace: Workspace,
        where: Where,
    ) -> None:
        self._fm = fm
        self._function = act.function
        self._clip = clip_of(fm, act)
        self._workspace = workspace
        self._where = where
        self._scaling = scaling
        self._lookup = None
        if table is not None:
            if self._clip is None:
                raise fail(
                    "E614",
                    f"{where.name}: a table with 32-bit entries needs a clip range that is forced",
                    origin=where.origin,
                )
            self._lookup = activation.lookup(table, fm.dtype, self._clip.dtype)
        self._prepare_scaling(bound)

    def _prepare_scaling(self, bound: int) -> None:
        scaling = self._scaling
        self._check_bound = scaling is not None and bound > scaling.bound
        self._repeat = 1
        self._narrow = False
        if scaling is None or scaling.truncate:
            return
        if self._fm.depth < INNER_LOOP and len(scaling.multiplier) > 1:
            self._repeat = self._fm.width
        largest = bound * int(np.abs(scaling.multiplier).max()) + int(np.abs(scaling.addend).max())
        shifted = largest >> int(scaling.first_shift.min())
        headroom = int(scaling.second_half.max()) + abs(self._fm.zero_point) + 2
        self._narrow = shifted + headroom < INT32_LIMIT
        wide = np.int32 if self._narrow else np.int64
        self._multiplier = self._constant(scaling.multiplier, np.int64)
        self._addend = self._constant(scaling.addend, np.int64)
        self._first_shift = self._constant(scaling.first_shift, np.int64)
        self._second_shift = self._constant(scaling.second_shift, wide)
        self._second_half = self._constant(scaling.second_half, wide)
        self._ties_down = self._constant(scaling.ties_down, wide)

    def _constant(self, values: Array, dtype: npt.DTypeLike) -> Array:
        """One value if all are equal, else repeated along a row of the map."""
        if (values == values[0]).all():
            return np.asarray(values[0], dtype)
        return np.tile(values.astype(dtype), self._repeat)

    def __call__(self, accumulators: Array, target: Array) -> None:
        """Finish `accumulators` `[n, h, W, C]` (exact integers, dense) into `target`, its like."""
        values = self._scaled(accumulators)
        if self._function in (Function.TANH, Function.SIGMOID):
            function = activation.tanh if self._function is Function.TANH else activation.sigmoid
            values = function(values)
        if self._clip is not None:
            self._clipped(values, self._clip)
        elif self._lookup is None:
            self._check_width(values)
        if self._lookup is not None:
            values = self._lookup(values)
        np.copyto(target, values.reshape(target.shape), casting="unsafe")

    def _scaled(self, accumulators: Array) -> Array:
        depth = accumulators.shape[3]
        rows = accumulators.size // (depth * self._repeat)
        shape = (rows, self._repeat * depth)
        v = self._workspace.take("scaled", shape, np.int64)
        np.copyto(v, accumulators.reshape(shape), casting="unsafe")
        if self._scaling is None:
            return v
        if self._check_bound:
            self._check(v, self._scaling.bound)
        if self._scaling.truncate:
            return self._scaling.apply(v)
        np.multiply(v, self._multiplier, out=v)
        np.add(v, self._addend, out=v)
        np.right_shift(v, self._first_shift, out=v)
        if self._narrow:
            narrow = self._workspace.take("narrow", shape, np.int32)
            np.copyto(narrow, v, casting="unsafe")
            v = narrow
        if self._scaling.has_second_step:
            self._second_step(v)
        return v

    def _second_step(self, v: Array) -> None:
        sign = self._workspace.take("sign", v.shape, v.dtype)
        np.right_shift(v, v.dtype.itemsize * 8 - 1, out=sign)
        if self._ties_down.ndim:
            np.bitwise_and(sign, self._ties_down, out=sign)
        np.add(v, sign, out=v)
        np.add(v, self._second_half, out=v)
        np.right_shift(v, self._second_shift, out=v)

    def _clipped(self, values: Array, clip: Clip) -> None:
        # tanh and sigmoid give their result in the output's own units.
        if clip.zero_point and self._function in (Function.NONE, Function.TABLE):
            np.add(values, clip.zero_point, out=values)
        np.maximum(values, clip.low, out=values)
        np.minimum(values, clip.high, out=values)

    def _check_width(self, values: Array) -> None:
        info = np.iinfo(self._fm.dtype)
        if values.size and (values.min() < info.min or values.max() > info.max):
            raise self._overflow(f"a result must fit {info.bits} bits", values)

    def _check(self, values: Array, bound: int) -> None:
        if values.size and max(-int(values.min()), int(values.max())) > bound:
            raise self._overflow(f"an accumulator must stay within {bound} to be scaled", values)

    def _overflow(self, rule: str, values: Array) -> MizzenError:
        return fail(
            "E641",
            f"{self._where.name}: {rule}, and reaches {int(values.min())}..{int(values.max())}",
            origin=self._where.origin,
            help="the network computes beyond the machine's integers; its quantisation is broken",
        )
