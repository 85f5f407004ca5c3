"""RESIZE: for each way in which samples lie between pixels, one operation for all that lie so.

Along an axis the samples repeat their places after a few; those of one place are every so manieth
row or column of the result, and read pixels at one distance. Nearest samples are copies; bilinear
ones a depthwise convolution whose weights are the distances. Whatever RESIZE TOSA has is made of
these; twice as many nearest samples are what the machine does to its input for nothing.

Ref: TOSA 1.0, 2.12.1 RESIZE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd

import numpy as np

from mizzen.graph import DType, ResizeMode
from mizzen.ops.image import Resize
from mizzen.targets.ethos_u.generator.lower.carrying import carry
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.finish import Finish, numbers, plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, input_zero, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.spans import LONGEST_STRIDE, Span
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.lower.windows import (
    WEIGHT_LIMIT,
    part,
    result,
)
from mizzen.targets.ethos_u.generator.operations import ChannelScales, Convolution, Kernel, Pooling
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    PoolingMode,
    RoundMode,
    UpscaleMode,
)

MOST_OPERATIONS = 256
"""Operations that one RESIZE becomes at most."""

Taps = tuple[tuple[int, int], ...]
"""Pixels that a sample is made of, and their weights."""


@dataclass(frozen=True, slots=True)
class SampleRun:
    """Samples that lie alike: where they are, and the weights of the pixels that they read."""

    span: Span
    weights: tuple[int, ...]


def _taps(place: int, unit: int, size: int, mode: ResizeMode) -> Taps:
    index, rest = place // unit, place % unit
    low, high = (min(max(each, 0), size - 1) for each in (index, index + 1))
    if mode is ResizeMode.NEAREST:
        return ((high if 2 * rest >= unit else low, 1),)
    if low == high or not rest:
        return ((low, unit),)
    return ((low, unit - rest), (high, rest))


def runs_of(
    size: int, count: int, scale: Sequence[int], offset: int, mode: ResizeMode
) -> list[SampleRun]:
    """Return the runs of an axis with `count` samples of `size` pixels."""
    unit, step = scale
    common = gcd(unit, step)
    every, apart = unit // common, step // common
    found: list[SampleRun] = []
    for first in range(min(every, count)):
        group: list[int] = []
        before: Taps = ()
        for place in range(first, count, every):
            taps = _taps(place * step + offset, unit, size, mode)
            moved = tuple((pixel + apart, weight) for pixel, weight in before)
            if group and (taps != moved or apart > LONGEST_STRIDE):
                found.append(_run(group, before, every, apart))
                group = []
            group.append(place)
            before = taps
        found.append(_run(group, before, every, apart))
    return found


def _run(group: Sequence[int], last: Taps, every: int, apart: int) -> SampleRun:
    count = len(group)
    start = last[0][0] - (count - 1) * apart
    extent = last[-1][0] - start + 1
    stride = apart if count > 1 else 1
    span = Span(group[0], every, count, start, 1, extent, stride, 0, 0)
    return SampleRun(span, tuple(weight for _, weight in last))


def doublings_of(operation: Resize) -> int | None:
    """Return how often both axes are doubled, every pixel as many times; None if it is not so."""
    scale, offset = numbers(operation.scale).tolist(), numbers(operation.offset).tolist()
    sizes, counts = operation.input.shape[1:3], operation.result.shape[1:3]
    rows, columns = (
        runs_of(
            sizes[axis],
            counts[axis],
            scale[2 * axis : 2 * axis + 2],
            offset[axis],
            operation.mode,
        )
        for axis in (0, 1)
    )
    return _doublings(sizes, counts, rows, columns)


@rule(Resize)
def resized(site: Site) -> Node:
    """RESIZE, and what follows it."""
    operation = site.operation
    assert isinstance(operation, Resize)
    source, mode = operation.input, operation.mode
    scale, offset = numbers(operation.scale).tolist(), numbers(operation.offset).tolist()
    need(source.dtype in (DType.INT8, DType.INT16), "it resizes no narrow integers")
    sizes, counts = source.shape[1:3], site.root.shape[1:3]
    rows, columns = (
        runs_of(sizes[axis], counts[axis], scale[2 * axis : 2 * axis + 2], offset[axis], mode)
        for axis in (0, 1)
    )
    if mode is ResizeMode.NEAREST:
        return _nearest(site, operation, rows, columns)
    need(len(rows) * len(columns) <= MOST_OPERATIONS, "its samples lie in too many ways")
    factor = reduce(gcd, (weight for run in (*rows, *columns) for weight in run.weights), 0)
    common = _common(rows) * _common(columns)
    assert factor
    finish = _divided(site.finish(scales=True), common)
    largest = max(
        a * b // common for y in rows for x in columns for a in y.weights for b in x.weights
    )
    need(largest <= WEIGHT_LIMIT, "its weights have more than 9 bits")

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(source)
        if not pixels(view):
            view = emitter.copied(view, site.origin)
        for image, made in zip(images(view), images(target), strict=True):
            for y in rows:
                for x in columns:
                    _blend(emitter, site, finish, image, made, y, x, common)

    return site.node((source,), write)


def _common(runs: Sequence[SampleRun]) -> int:
    return reduce(gcd, (weight for run in runs for weight in run.weights), 0)


def _divided(finish: Finish, factor: int) -> Finish:
    """Return a finish for sums that are less by a factor; the same results."""
    multiplier, shift = int(finish.multipliers[0]), int(finish.shifts[0])
    need(len(finish.multipliers) == 1, "its channels have scales of their own")
    odd, bits = factor, 0
    while not odd & 1:
        odd, bits = odd >> 1, bits + 1
    multiplier *= odd
    if finish.rounding is RoundMode.NATURAL or shift <= 31:
        shift -= bits
        if shift < 0:
            multiplier, shift = multiplier << -shift, 0
    elif not multiplier & (multiplier - 1):
        # Whole numbers in front of the first rounding, as they are with the factor.
        power = multiplier.bit_length() - 1
        need(power + bits >= 31, "it rounds twice between its samples")
        shift += 31 - power - bits
        multiplier = 1 << 31
    else:
        multiplier <<= bits
    need(multiplier < 1 << 32, "its scale is too large for its weights")
    return replace(finish, multipliers=np.array([multiplier]), shifts=np.array([shift]))


def _blend(
    emitter: Emitter,
    site: Site,
    finish: Finish,
    image: View,
    made: View,
    y: SampleRun,
    x: SampleRun,
    common: int,
) -> None:
    channels = image.shape[2]
    weights = np.multiply.outer(y.weights, x.weights) // common
    scale = finish.scale
    emitter.operations.append(
        Convolution(
            site.origin,
            emitter.map(part(image, y.span, x.span)),
            emitter.map(result(made, y.span, x.span), finish.zero_point),
            Kernel(len(y.weights), len(x.weights), y.span.stride, x.span.stride),
            np.broadcast_to(weights[..., None], (channels, *weights.shape, 1)).astype(np.int16),
            ChannelScales(
                np.zeros(channels, np.int64),
                np.full(channels, scale.multiplier, np.int64),
                np.full(channels, scale.shift, np.int64),
            ),
            finish.activation,
            depthwise=True,
            rounding=finish.rounding,
            accumulators=AccFormat.I40 if emitter.dtype(image).itemsize == 2 else AccFormat.I32,
        )
    )


def _nearest(
    site: Site, operation: Resize, rows: list[SampleRun], columns: list[SampleRun]
) -> Node:
    source = operation.input
    finish, zero = site.finish(scales=True), input_zero(site)
    sizes, counts = source.shape[1:3], site.root.shape[1:3]
    doublings = _doublings(sizes, counts, rows, columns)
    if doublings is None:
        need(len(rows) * len(columns) <= MOST_OPERATIONS, "its samples lie in too many ways")

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(source)
        if doublings is not None:
            _doubled(emitter, site, finish, zero, view, target, doublings)
            return
        for image, made in zip(images(view), images(target), strict=True):
            for y in rows:
                for x in columns:
                    seen = _stepped(part(image, _wide(y.span), _wide(x.span)), y.span, x.span)
                    written = result(made, y.span, x.span)
                    carry(emitter, seen, written, finish, zero, site.origin)

    return site.node((source,), write)


def _wide(span: Span) -> Span:
    return replace(span, step=1)


def _stepped(view: View, y: Span, x: Span) -> View:
    return view.stepped(0, y.stride, y.count).stepped(1, x.stride, x.count)


def _doublings(
    sizes: Sequence[int], counts: Sequence[int], rows: list[SampleRun], columns: list[SampleRun]
) -> int | None:
    """Return how often both axes are doubled, every pixel as many times; None if it is not so."""
    factor = counts[0] // sizes[0]
    power = factor.bit_length() - 1
    if power < 1 or factor != 1 << power:
        return None
    for size, count, runs in zip(sizes, counts, (rows, columns), strict=True):
        if count != factor * size:
            return None
        for run in runs:
            if run.span.start != run.span.out_start // factor or run.span.stride > 1:
                return None
    return power


def _doubled(
    emitter: Emitter, site: Site, finish: Finish, zero: int, view: View, target: View, times: int
) -> None:
    """Add one operation for each time that both axes are doubled, the last with the finish."""
    if not pixels(view):
        view = emitter.copied(view, site.origin)
    for step in range(times):
        batch, height, width, channels = view.shape
        ends = step == times - 1
        shape = (batch, 2 * height, 2 * width, channels)
        made = target if ends else emitter.tensor("doubled", shape, emitter.dtype(view))
        own = finish if ends else plain(site.operation.operand.dtype)
        for image, place in zip(images(view), images(made), strict=True):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    PoolingMode.AVERAGE,
                    emitter.map(image, zero if ends else 0),
                    emitter.map(place, own.zero_point),
                    Kernel(),
                    own.scale,
                    own.activation,
                    upscale=UpscaleMode.NEAREST,
                    rounding=own.rounding,
                )
            )
        view = made
