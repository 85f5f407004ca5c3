"""From accumulators to elements: scale, round, add the zero point, clip, apply the function.

The last stage of every kernel. What is fixed for an operation is prepared once; a call works on
one block of accumulators in a few passes over memory that stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.targets.ethos_u.judge.sim import activation_functions
from mizzen.targets.ethos_u.judge.sim.memory import Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Clip, Output, Where
from mizzen.targets.ethos_u.judge.sim.rounding import INT32_LIMIT, Scaling, scaling
from mizzen.targets.ethos_u.judge.sim.scales import ChannelScales

Array = npt.NDArray[Any]

INNER_LOOP = 64
"""Below this many channels, per-channel constants are repeated along a row to keep loops long."""


def output_scaling(output: Output) -> Scaling | None:
    """Prepare the scale that all channels share; None if there is none, or it changes nothing."""
    if output.scale is None or output.scale == (1, 0):
        return None
    multiplier, shift = output.scale
    return scaling(multiplier, shift, output.rounding, 0, output.doubling_bit)


def channel_scaling(output: Output, scales: ChannelScales) -> Scaling:
    """Prepare biases and the scales of channels, or the scale that all share."""
    multiplier, shift = scales.multiplier, scales.shift
    if output.scale is not None:
        multiplier, shift = (np.full_like(scales.bias, value) for value in output.scale)
    return scaling(multiplier, shift, output.rounding, scales.bias, output.doubling_bit)


class Finish:
    """Turns accumulators into elements of the output feature map.

    output       where results go, and clipping and function
    scaling      multiplier and shift, or None where the operation does not scale
    bound        largest absolute value the accumulators can have
    table        lookup table, if the function has one
    saturates    whether 32-bit results end at the ends of their type, where others are a fault
    """

    def __init__(
        self,
        output: Output,
        scaling: Scaling | None,
        bound: int,
        table: npt.NDArray[np.uint8] | None,
        workspace: Workspace,
        where: Where,
        *,
        saturates: bool = False,
    ) -> None:
        self._saturates = saturates
        self._dtype = output.fm.dtype
        _, self._width, self._depth = output.shape
        self._clip = output.activation.clip
        self._workspace = workspace
        self._where = where
        self._scaling = scaling
        self._curve, self._lookup = activation_functions.functions(output, table)
        self._prepare_scaling(bound)
        self._is_clipped = self._clip is not None and not self._fits(bound, self._clip)

    def _fits(self, bound: int, clip: Clip) -> bool:
        """Whether clipping changes nothing; it takes two passes over memory."""
        if self._curve or clip.zero_point:
            return False
        if clip.wraps:
            return True
        reached = bound if self._scaling is None else INT32_LIMIT - 1 if self._narrow else None
        return reached is not None and clip.low <= -reached and reached <= clip.high

    def _prepare_scaling(self, bound: int) -> None:
        scaling = self._scaling
        self._check_bound = scaling is not None and bound > scaling.bound
        self._repeat = 1
        self._narrow = False
        if scaling is None or scaling.truncate:
            return
        if self._depth < INNER_LOOP and len(scaling.multiplier) > 1:
            self._repeat = self._width
        largest = bound * int(np.abs(scaling.multiplier).max()) + int(np.abs(scaling.addend).max())
        shifted = largest >> int(scaling.first_shift.min())
        zero_point = self._clip.zero_point if self._clip else 0
        headroom = int(scaling.second_half.max()) + abs(zero_point) + 2
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
        if self._curve:
            values = self._curve(values)
        if self._clip is None:
            self._end_wide(values)
        elif self._is_clipped:
            self._clipped(values, self._clip)
        if self._lookup:
            values = self._lookup(values)
        np.copyto(target, values.reshape(target.shape), casting="unsafe")

    def _scaled(self, accumulators: Array) -> Array:
        depth = accumulators.shape[3]
        lines = accumulators.size // (depth * self._repeat)
        shape = (lines, self._repeat * depth)
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
        if clip.zero_point and not self._curve:
            np.add(values, clip.zero_point, out=values)
        if clip.wraps:
            return
        np.maximum(values, clip.low, out=values)
        np.minimum(values, clip.high, out=values)

    def _end_wide(self, values: Array) -> None:
        info = np.iinfo(self._dtype)
        if self._saturates:
            np.clip(values, info.min, info.max, out=values)
        elif values.size and (values.min() < info.min or values.max() > info.max):
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
