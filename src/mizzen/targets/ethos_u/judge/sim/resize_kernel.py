"""RESIZE: interpolate between the elements around places that lie at rational steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.finish import Finish, output_scaling
from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, OutputView, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Interpolation, Resize, Steps
from mizzen.targets.ethos_u.judge.sim.window import images_per_block

Array = npt.NDArray[Any]

VALUE_BITS = 16
"""Results are shifted left by this before they are scaled."""


@dataclass(frozen=True, slots=True, eq=False)
class ResizeKernel:
    """A resize; `table` for a function that has one."""

    operation: Resize
    table: npt.NDArray[np.uint8] | None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        return _ResizeRun(self, memory, workspace).run


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Along one axis: two places to read for each element, and the integer weight of each."""

    places: tuple[Array, Array]
    weights: tuple[Array, Array]


def taps(steps: Steps, size: int, count: int, mode: Interpolation) -> Taps:
    """Find the taps of `count` elements on an axis of `size`; places stay inside."""
    position = np.arange(count) * steps.step + steps.offset
    whole, part = np.divmod(position, steps.scale)
    match mode:
        case Interpolation.BILINEAR:
            weights = steps.scale - part, part
        case Interpolation.NEAREST:
            whole = whole + (2 * part >= steps.scale)
            weights = np.ones_like(part), np.zeros_like(part)
        case Interpolation.REPLICATE:
            weights = np.ones_like(part), np.zeros_like(part)
    places = np.clip(whole, 0, size - 1), np.clip(whole + 1, 0, size - 1)
    return Taps(places, weights)


class _ResizeRun:
    def __init__(self, kernel: ResizeKernel, memory: Memory, workspace: Workspace) -> None:
        op = self.op = kernel.operation
        self.batch = memory.batch
        self.view = MapView(op.ifm, memory, workspace, "ifm")
        self.output = OutputView(op.output, memory, workspace)
        height, width, depth = self.output.shape
        self.rows = taps(op.rows, op.ifm.height, height, op.mode)
        self.columns = taps(op.columns, op.ifm.width, width, op.mode)
        smooth = op.mode is Interpolation.BILINEAR
        area = op.rows.scale * op.columns.scale if smooth else 1
        bound = op.ifm.magnitude * area << VALUE_BITS
        prepared = output_scaling(op.output)
        self.finish = Finish(op.output, prepared, bound, kernel.table, workspace, op.where)
        self.images = images_per_block(height * width * depth)

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        for start in range(0, self.batch, self.images):
            stop = min(start + self.images, self.batch)
            images = self.view.load(start, stop).astype(np.int64) - self.op.ifm.zero_point
            if self.op.mode is Interpolation.BILINEAR:
                mixed = _mixed(images, self.rows, 1)
                values = _mixed(mixed, self.columns, 2)
            else:
                values = images[:, self.rows.places[0]][:, :, self.columns.places[0]]
            self.finish(values << VALUE_BITS, self.output.target(start, stop))
            self.output.commit(start, stop)


def _mixed(images: Array, along: Taps, axis: int) -> Array:
    shape = [1, 1, 1, 1]
    shape[axis] = -1
    first, second = (
        np.take(images, places, axis) * weights.reshape(shape)
        for places, weights in zip(along.places, along.weights, strict=True)
    )
    return first + second
