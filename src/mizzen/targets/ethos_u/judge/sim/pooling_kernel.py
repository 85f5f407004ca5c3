"""POOL: maximum, average and sum over channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.sim.accumulators import Sums, initial_bound
from mizzen.targets.ethos_u.judge.sim.finish import Finish, channel_scaling, output_scaling
from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, OutputView, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Kernel, Pool, Pooling
from mizzen.targets.ethos_u.judge.sim.rounding import INT32_LIMIT
from mizzen.targets.ethos_u.judge.sim.scales import ChannelScales
from mizzen.targets.ethos_u.judge.sim.window import PaddedInput, extent, images_per_block, windows

Array = npt.NDArray[Any]

TAPS = 16
"""Up to this many window elements are taken one by one, more as one reduction."""

PADDING = {Pool.MAX: 0, Pool.MIN: 1, Pool.ARGMAX_X: 0, Pool.ARGMAX_Y: 0}
"""Kinds that select an element; padding has the type's smallest or largest value."""
ARGMAX = (Pool.ARGMAX_X, Pool.ARGMAX_Y)
INDEX_BITS = 16
"""Places that ARGMAX gives are shifted left by this before they are scaled."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolingKernel:
    """A pooling operation; `table` for a function that has one, `scales` if channels have them."""

    operation: Pooling
    table: npt.NDArray[np.uint8] | None
    scales: ChannelScales | None = None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        return _PoolingRun(self, memory, workspace).run


class _PoolingRun:
    def __init__(self, kernel: PoolingKernel, memory: Memory, workspace: Workspace) -> None:
        op = self.op = kernel.operation
        self.batch = memory.batch
        self.workspace = workspace
        view = MapView(op.ifm, memory, workspace, "ifm")
        self.output = OutputView(op.output, memory, workspace)
        self.height, self.width, _ = self.output.shape
        self.zero_point = op.ifm.zero_point
        selects = op.mode in PADDING
        window = op.kernel.height * op.kernel.width
        window *= op.ifm.depth if op.mode is Pool.REDUCE_SUM else 1
        bound = op.ifm.magnitude * (1 if selects else window)
        self.checked = bound >= 1 << (op.accumulators.bits - 1) and not selects
        self.dtype = np.int32 if bound < INT32_LIMIT else np.int64
        self.input = PaddedInput(
            view,
            0 if selects else self.zero_point,
            op.kernel,
            op.upscale,
            extent(op.kernel, self.height, self.width),
            op.ifm.dtype if selects else self.dtype,
            workspace,
            padding=op.ifm.limits[PADDING[op.mode]] if selects else 0,
        )
        self.counts = window_counts(op.kernel, self.height, self.width)
        prepared = output_scaling(op.output)
        if kernel.scales is not None:
            prepared = channel_scaling(op.output, kernel.scales)
        if op.mode in ARGMAX:
            bound = window << INDEX_BITS
        bound += initial_bound(op.accumulators)
        self.sums = None
        if not op.accumulators.is_plain:
            self.sums = Sums(op.accumulators, op.output.shape, memory, workspace)
        self.finish = Finish(op.output, prepared, bound, kernel.table, workspace, op.where)
        self.images = images_per_block(self.input.height * self.input.width * op.ifm.depth)

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        for start in range(0, self.batch, self.images):
            stop = min(start + self.images, self.batch)
            result = self._reduced(self.input.load(start, stop))
            if self.sums:
                result = self.sums(result, start, stop, slice(None))
            if result is not None:
                self.finish(result, self.output.target(start, stop))
                self.output.commit(start, stop)

    def _reduced(self, padded: Array) -> Array:
        match self.op.mode:
            case Pool.MAX:
                best = self._over_window(padded, np.maximum)
                return np.subtract(best, self.zero_point, dtype=self.dtype)
            case Pool.MIN:
                best = self._over_window(padded, np.minimum)
                return np.subtract(best, self.zero_point, dtype=self.dtype)
            case Pool.ARGMAX_X | Pool.ARGMAX_Y:
                return self._first_greatest(padded)
            case Pool.REDUCE_SUM:
                padded = padded.sum(axis=3, keepdims=True, dtype=self.dtype)
                return self._summed(padded)
            case Pool.SUM:
                return self._summed(padded)
            case Pool.AVERAGE:
                sums = self._summed(padded)
                return divide(sums, self.counts) if self.op.divided else sums
            case mode:
                raise AssertionError(mode)

    def _first_greatest(self, padded: Array) -> Array:
        """Place of the first greatest element of each window, in units that the scale expects."""
        kernel = self.op.kernel
        seen = windows(padded, kernel, self.height, self.width)
        flat = seen.reshape(*seen.shape[:3], kernel.height * kernel.width, seen.shape[5])
        return flat.argmax(axis=3).astype(np.int64) << INDEX_BITS

    def _summed(self, padded: Array) -> Array:
        sums = self._over_window(padded, np.add)
        if self.checked:
            self._check(sums)
        return sums

    def _over_window(self, padded: Array, combine: np.ufunc) -> Array:
        kernel = self.op.kernel
        seen = windows(padded, kernel, self.height, self.width)
        if kernel.height * kernel.width == 1:
            return seen[:, :, :, 0, 0]
        if kernel.height * kernel.width > TAPS:
            return combine.reduce(seen, axis=(3, 4), dtype=padded.dtype)
        result = self.workspace.take("reduced", (*seen.shape[:3], seen.shape[5]), padded.dtype)
        np.copyto(result, seen[:, :, :, 0, 0])
        for tap in range(1, kernel.height * kernel.width):
            y, x = divmod(tap, kernel.width)
            combine(result, seen[:, :, :, y, x], out=result)
        return result

    def _check(self, sums: Array) -> None:
        limit = 1 << (self.op.accumulators.bits - 1)
        if sums.min() < -limit or sums.max() >= limit:
            raise fail(
                "E641",
                f"{self.op.where.name}: an accumulator must fit {self.op.accumulators.bits} bits, "
                f"and reaches {int(sums.min())}..{int(sums.max())}",
                origin=self.op.where.origin,
                help="the network computes beyond the machine's integers; its quantisation is "
                "broken",
            )


def window_counts(kernel: Kernel, height: int, width: int) -> npt.NDArray[np.int64]:
    """Count the elements of each window that are not padding, `[height, width, 1]`."""
    lines, columns = extent(kernel, height, width)
    y = np.arange(height)[:, None] * kernel.stride_y - kernel.pad_top
    x = np.arange(width)[:, None] * kernel.stride_x - kernel.pad_left
    y = y + np.arange(kernel.height) * kernel.dilation_y
    x = x + np.arange(kernel.width) * kernel.dilation_x
    in_rows = ((y >= 0) & (y < lines)).sum(axis=1)
    in_columns = ((x >= 0) & (x < columns)).sum(axis=1)
    return (in_rows[:, None] * in_columns)[:, :, None]


def divide(sums: Array, counts: npt.NDArray[np.int64]) -> Array:
    """Divide by the number of elements, halves away from zero; an empty window gives zero."""
    counts = np.maximum(counts, 1)
    quotient = (2 * np.abs(sums.astype(np.int64)) + counts) // (2 * counts)
    return np.where(sums < 0, -quotient, quotient)
