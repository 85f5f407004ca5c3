"""CONV2D and DEPTHWISE_CONV2D: in phases of a dilation, or in parts of a kernel that is too large.

Parts are convolutions that are not scaled, and their sum has 32 bits. It is scaled by products, of
which an operation has one shift: channels that follow each other and share it are scaled at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd

import numpy as np

from mizzen.graph import DType
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d
from mizzen.targets.ethos_u.generator.lower.carrying import INT32, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.finish import WIDE, Finish, plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import NoFormError, need
from mizzen.targets.ethos_u.generator.lower.spans import Span, Windows
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.lower.windows import (
    LARGEST_KERNEL,
    LONGEST_DILATION,
    TALLEST_KERNEL,
    Layer,
    Stage,
    convolved,
    layer_of,
    pair,
    scales_of,
    sides,
)
from mizzen.targets.ethos_u.generator.lower.words import Words
from mizzen.targets.ethos_u.generator.operations import Elementwise, Scale
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode


@rule(Conv2d, DepthwiseConv2d)
def convolution(site: Site) -> Node:
    """CONV2D or DEPTHWISE_CONV2D, and the scale, clip and table after it."""
    operation = site.operation
    assert isinstance(operation, Conv2d | DepthwiseConv2d)
    error: NoFormError | None = None
    for phases in _phases_of(operation):
        try:
            return convolved(site, operation, phases)
        except NoFormError as other:
            error = other
    assert error is not None
    node = _in_parts(site, operation)
    if node is None:
        raise error
    return node


def _phases_of(operation: Conv2d | DepthwiseConv2d) -> Iterator[tuple[int, int]]:
    """Return in how many phases rows and columns can be, the best first.

    A dilation that the machine does not have multiplies with no zeros then.
    """
    first = 0 if isinstance(operation, DepthwiseConv2d) else 1
    down, across = (
        step // gcd(step, LONGEST_DILATION) if taps > 1 and stride == 1 else 1
        for step, taps, stride in zip(
            operation.dilation,
            operation.weight.shape[first : first + 2],
            operation.stride,
            strict=True,
        )
    )
    yield from dict.fromkeys(((down, across), (down, 1), (1, across), (1, 1)))


def _in_parts(site: Site, operation: Conv2d | DepthwiseConv2d) -> Node | None:
    """Return the node of a convolution in parts of its kernel; None where that does not help."""
    layer, finish = layer_of(operation), site.finish(scales=True)
    height, width = layer.reach
    if height * width <= LARGEST_KERNEL or operation.input.dtype is not DType.INT8:
        return None
    need(finish.entries is None or finish.dtype is DType.INT8, "its table gives wide integers")
    need(finish.dtype not in WIDE or finish.is_identity, "its sums of 32 bits are scaled")
    windows = Windows(
        operation.input.shape, sides(site.root), pair(operation.stride), operation.pad
    )
    scales = scales_of(layer, finish)
    whole = replace(finish, multipliers=scales.multipliers, shifts=scales.shifts)
    parts = [_KernelPart.of(site, each) for each in _parts(layer, windows)]

    def write(emitter: Emitter, target: View) -> None:
        view, words = emitter.read(operation.input), Words(emitter, site.origin)
        if not pixels(view):
            view = emitter.copied(view, site.origin)
        first, *others = (each.emit(emitter, view) for each in parts)
        for other in others:
            first = words(ElementwiseMode.ADD, first, other)
        scaled_by_channels(emitter, site, first, target, whole)

    return site.node((operation.input,), write)


def _parts(layer: Layer, windows: Windows) -> Iterator[tuple[Layer, Windows]]:
    """Return parts of a kernel that the machine has, the first with the bias."""
    _, height, width, _ = layer.weights.shape
    down, across = layer.dilation
    columns = min(width, (LARGEST_KERNEL - 1) // across + 1)
    reach = (columns - 1) * across + 1
    rows = min(height, (min(TALLEST_KERNEL, LARGEST_KERNEL // reach) - 1) // down + 1)
    top, bottom, left, right = windows.pads
    biases = layer.biases
    for row in range(0, height, rows):
        for column in range(0, width, columns):
            weights = layer.weights[:, row : row + rows, column : column + columns]
            pads = top - row * down, bottom, left - column * across, right
            part = replace(layer, weights=np.ascontiguousarray(weights), biases=biases)
            yield part, replace(windows, pads=pads)
            biases = np.zeros_like(biases)


@dataclass(frozen=True, slots=True, eq=False)
class _KernelPart:
    """A part of a kernel, and where its windows go."""

    stage: Stage
    shape: tuple[int, ...]
    down: list[Span]
    across: list[Span]

    @staticmethod
    def of(site: Site, part: tuple[Layer, Windows]) -> _KernelPart:
        """Return a part. Refused where its windows have no form."""
        layer, windows = part
        sums = plain(DType.INT32)
        stage = Stage(site, layer, sums, scales_of(layer, sums))
        return _KernelPart(stage, site.root.shape, *windows.spans(layer.reach, layer.dilation))

    def emit(self, emitter: Emitter, view: View) -> View:
        """Add its operations; returns its sums."""
        made = emitter.tensor("part", self.shape, INT32)
        for image, sums in zip(images(view), images(made), strict=True):
            self.stage.over(emitter, image, sums, self.down, self.across)
        return made


def scaled_by_channels(
    emitter: Emitter, site: Site, sums: View, target: View, finish: Finish
) -> None:
    """Add products of sums and the multipliers of their channels, shifted."""
    axis, start = len(sums.shape) - 1, 0
    for shift, run in groupby(finish.shifts.tolist()):
        count = len(list(run))
        factors = finish.multipliers[start : start + count].astype(np.int32)
        second = emitter.constant(factors.reshape(1, 1, count), "multipliers")
        one, other = (view.part(axis, start, count) for view in (sums, target))
        start += count
        for ifm, ifm2, ofm in each_with(emitter, one, second, other):
            emitter.operations.append(
                Elementwise(
                    site.origin,
                    ElementwiseMode.MUL,
                    ifm,
                    ifm2,
                    replace(ofm, zero_point=finish.zero_point),
                    finish.activation,
                    scale=Scale(1, shift),
                    rounding=finish.rounding,
                )
            )
