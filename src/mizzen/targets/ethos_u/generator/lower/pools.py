"""Pools: one NPU operation each, with the clip and table after it.

A window that is too large is two for a greatest, along columns and then along rows. An average of a
whole image that is too large is a sum over channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mizzen.graph import DType, Value, integer_range
from mizzen.ops.tensor import AvgPool2d, MaxPool2d
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.finish import Finish, number, plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.reductions import over_channels
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.spans import Windows
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.lower.windows import (
    LARGEST_POOL,
    TALLEST_POOL,
    padded_by,
    pair,
    part,
    result,
    sides,
)
from mizzen.targets.ethos_u.generator.operations import Kernel, Pooling, Scale
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, RoundMode

PADDED_AVERAGE = 8
"""Rows and columns of an average with padding, at most. Ref: Vela 5.2.0, SUPPORTED_OPS."""

ONE = Scale(1, 0)
ROWS, COLUMNS = 1, 2
"""Axes of a value [N, H, W, C]."""

Pair = tuple[int, int]


@rule(AvgPool2d)
def average(site: Site) -> Node:
    """AVG_POOL2D, and the clip and table after it."""
    operation = site.operation
    assert isinstance(operation, AvgPool2d)
    finish, kernel = site.finish(scales=False), pair(operation.kernel)
    finish = replace(finish, zero_point=number(operation.output_zp))
    source, zero = operation.input, number(operation.input_zp)
    small = max(kernel) <= PADDED_AVERAGE
    need(small or not any(operation.pad), "its padded window is large")
    windows = Windows(source.shape, sides(site.root), pair(operation.stride), operation.pad)
    if not _fits(kernel):
        need(kernel == sides(source), "its window is too large")
        return _of_image(site, source, zero, finish)
    once = _Pass(site, PoolingMode.AVERAGE, kernel, windows, finish, zero)

    def write(emitter: Emitter, target: View) -> None:
        once.add(emitter, _read(emitter, site, source), target)

    return site.node((source,), write)


def _of_image(site: Site, source: Value, zero: int, finish: Finish) -> Node:
    """Return the node of an average over a whole image."""
    height, width = sides(source)
    scale = reciprocal(height * width)
    finish = replace(
        finish,
        multipliers=np.array([scale.multiplier], np.int64),
        shifts=np.array([scale.shift], np.int64),
        rounding=RoundMode.NATURAL,
    )

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(source)
        over_channels(emitter, site, finish, zero, view, target, (ROWS, COLUMNS))

    return site.node((source,), write)


@rule(MaxPool2d)
def greatest(site: Site) -> Node:
    """MAX_POOL2D, and the clip and table after it."""
    operation = site.operation
    assert isinstance(operation, MaxPool2d)
    finish, kernel = site.finish(scales=False), pair(operation.kernel)
    source, pads = operation.input, operation.pad
    if source.dtype in (DType.INT8, DType.INT16):
        source, pads, channels = padded_by(source, pads, integer_range(source.dtype)[0])
        if channels is not None:
            source, pads = operation.input, operation.pad
    windows = Windows(source.shape, sides(site.root), pair(operation.stride), pads)
    passes = _passes(site, kernel, windows, finish)

    def write(emitter: Emitter, target: View) -> None:
        view = _read(emitter, site, source)
        *before, last = passes
        for each in before:
            made = emitter.tensor("columns", each.shape, emitter.dtype(view))
            each.add(emitter, view, made)
            view = made
        last.add(emitter, view, target)

    return site.node((source,), write)


def _passes(site: Site, kernel: Pair, windows: Windows, finish: Finish) -> list[_Pass]:
    """Return the pass that finds the greatest, or one along columns and one along rows."""
    if _fits(kernel):
        return [_Pass(site, PoolingMode.MAX, kernel, windows, finish)]
    count, height, _, depth = windows.shape
    rows, columns = windows.size
    down, across = windows.strides
    top, bottom, left, right = windows.pads
    first = Windows(windows.shape, (height, columns), (1, across), (0, 0, left, right))
    second = Windows(
        (count, height, columns, depth), (rows, columns), (down, 1), (top, bottom, 0, 0)
    )
    need(_fits((1, kernel[1])) and _fits((kernel[0], 1)), "its window is too large")
    nothing = plain(finish.dtype)
    return [
        _Pass(site, PoolingMode.MAX, (1, kernel[1]), first, nothing),
        _Pass(site, PoolingMode.MAX, (kernel[0], 1), second, finish),
    ]


def _fits(kernel: Pair) -> bool:
    height, width = kernel
    return min(height, width) <= TALLEST_POOL and height * width <= LARGEST_POOL


def _read(emitter: Emitter, site: Site, source: Value) -> View:
    view = emitter.read(source)
    return view if pixels(view) else emitter.copied(view, site.origin)


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """Windows of one size over images."""

    site: Site
    mode: PoolingMode
    kernel: Pair
    windows: Windows
    finish: Finish
    zero: int = 0

    def __post_init__(self) -> None:
        self.upright.spans(self.size)  # refuses what has none

    @property
    def upright(self) -> Windows:
        """The windows, with rows as columns where they are too tall else."""
        return self.windows.across() if self.kernel[0] > TALLEST_POOL else self.windows

    @property
    def size(self) -> Pair:
        """Rows and columns of a window, as the machine sees it."""
        height, width = self.kernel
        return (width, height) if self.upright.turned else (height, width)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of what is given."""
        return self.windows.shape[0], *self.windows.size, self.windows.shape[3]

    def add(self, emitter: Emitter, source: View, target: View) -> None:
        """Add the operations that write a view [N, H, W, C]."""
        windows = self.upright
        down, across = windows.spans(self.size)
        seen = windows.seen(source), windows.seen(target)
        for image, made in zip(*map(images, seen), strict=True):
            for y in down:
                for x in across:
                    pads = y.before, x.before, y.after, x.after
                    kernel = Kernel(*self.size, y.stride, x.stride, 1, 1, *pads)
                    self._add(emitter, part(image, y, x), result(made, y, x), kernel)

    def _add(self, emitter: Emitter, source: View, target: View, kernel: Kernel) -> None:
        divides = self.mode is PoolingMode.AVERAGE and not any(kernel.pads)
        emitter.operations.append(
            Pooling(
                self.site.origin,
                self.mode,
                emitter.map(source, self.zero),
                emitter.map(target, self.finish.zero_point),
                kernel,
                reciprocal(kernel.height * kernel.width) if divides else ONE,
                self.finish.activation,
                rounding=RoundMode.NATURAL,
            )
        )


def reciprocal(count: int) -> Scale:
    """Return the scale that divides by a number as TOSA does, rounded once.

    Ref: TOSA 1.0, 1.11.1 reciprocal_scale.
    """
    bits = (count - 1).bit_length()
    return Scale((((1 << 30) + 1) << bits) // count, 30 + bits)
