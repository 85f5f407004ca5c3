"""Where windows go along the rows and columns of an input, in parts that the machine can have.

A stride that is too long is a part for each place, or a step over what one element sees; a window
that is too tall goes over columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View

LONGEST_STRIDE = 3

MOST_BEFORE, MOST_AFTER = 127, 255
"""Padding at top and left, at bottom and right. Ref: registers of Ethos-U55, IFM_PAD_TOP."""

MOST_PIECES = 128
"""Operations that one layer is cut into at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the output along an axis, and what it reads: with what padding and stride.

    `extent` elements from `start` on, every `step`-th, are read; the output's are every
    `out_step`-th from `out_start` on.

    in_padding  whether windows see nothing of the input: what is read does not count
    skipped     taps at the window's start and end that are in the padding everywhere
    """

    out_start: int
    out_step: int
    count: int
    start: int
    step: int
    extent: int
    stride: int
    before: int
    after: int
    in_padding: bool = False
    skipped: tuple[int, int] = (0, 0)


def spans(size: int, count: int, kernel: int, stride: int, pads: tuple[int, int]) -> list[Span]:
    """Return the parts in which a window of `kernel` elements goes over `size` elements."""
    before, _ = pads
    first = max((before - kernel) // stride + 1, 0)
    last = min((size - 1 + before) // stride, count - 1)
    unseen = [*range(min(first, count)), *range(max(last + 1, first), count)]
    parts = [Span(place, 1, 1, 0, 1, 1, 1, 0, 0, in_padding=True) for place in unseen]
    if first > last:
        return parts
    skipped = max(first * stride - before, 0)
    margins = max(before - first * stride, 0), max(last * stride - before + kernel - size, 0)
    for span in _seeing(size - skipped, last - first + 1, kernel, stride, margins):
        parts.append(replace(span, out_start=span.out_start + first, start=span.start + skipped))
    return parts


def _seeing(size: int, count: int, kernel: int, stride: int, pads: tuple[int, int]) -> list[Span]:
    """Return the parts where every window sees something."""
    before, _ = pads
    if count == 1 or (stride <= LONGEST_STRIDE and max(pads) < kernel):
        used = (count - 1) * stride + kernel - before
        after = max(used - size, 0)
        extent = min(size, used)
        if extent > 0 and max(before, after) < kernel:
            return [Span(0, 1, count, 0, 1, extent, 1 if count == 1 else stride, before, after)]
    if kernel == 1 and not before and (count - 1) * stride < size:
        return [Span(0, 1, count, 0, stride, count, 1, 0, 0)]
    need(count <= MOST_PIECES, f"it strides over {stride} elements, and {count} times")
    parts: list[Span] = []
    for place in range(count):
        first = place * stride - before
        low, high = max(first, 0), min(first + kernel, size)
        parts.append(Span(place, 1, 1, low, 1, high - low, 1, low - first, first + kernel - high))
    return parts


def _cropped(span: Span, kernel: int, dilation: int) -> list[Span]:
    """Return a part in parts with less padding, without the taps that are in it everywhere."""
    if span.before <= MOST_BEFORE and span.after <= MOST_AFTER:
        return [span]
    most = max((MOST_BEFORE - dilation) // span.stride, 1)
    parts: list[Span] = []
    for first in range(0, span.count, most):
        count = min(most, span.count - first)
        low = first * span.stride - span.before
        last = low + (count - 1) * span.stride
        skipped = max(-last, 0) // dilation, max(low + kernel - span.extent, 0) // dilation
        begin, end = low + skipped[0] * dilation, last + kernel - skipped[1] * dilation
        start = max(begin, 0)
        cropped = replace(
            span,
            out_start=span.out_start + span.out_step * first,
            count=count,
            start=span.start + span.step * start,
            extent=min(end, span.extent) - start,
            stride=1 if count == 1 else span.stride,
            before=max(-begin, 0),
            after=max(end - span.extent, 0),
            skipped=skipped,
        )
        parts.append(cropped)
    return parts


def _in_phases(size: int, count: int, kernel: int, before: int, step: int) -> list[Span]:
    """Return the parts in which a window goes that sees every `step`-th of `size` elements.

    Results that are `step` from each other see the same elements: they are one phase.
    """
    parts: list[Span] = []
    for phase in range(min(step, count)):
        margin, start = -((phase - before) // step), (phase - before) % step
        places, seen = -(-(count - phase) // step), -(-(size - start) // step)
        if seen <= 0:
            unseen = range(phase, count, step)
            parts += [Span(place, 1, 1, 0, 1, 1, 1, 0, 0, in_padding=True) for place in unseen]
            continue
        for span in spans(seen, places, kernel, 1, (margin, 0)):
            moved = replace(
                span,
                out_start=phase + step * span.out_start,
                out_step=step * span.out_step,
                start=0 if span.in_padding else start + step * span.start,
                step=step * span.step,
            )
            parts.append(moved)
    return parts


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows go: over an input [N, H, W, C], for how many rows and columns of results.

    phases  rows, and columns, from one that a window sees to the next
    turned  whether rows are columns of the values and columns rows: what is too tall is wide
    """

    shape: tuple[int, ...]
    size: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, ...]
    phases: tuple[int, int] = (1, 1)
    turned: bool = False

    def across(self) -> Windows:
        """Return the same windows with rows as columns."""
        count, height, width, depth = self.shape
        top, bottom, left, right = self.pads
        return Windows(
            (count, width, height, depth),
            (self.size[1], self.size[0]),
            (self.strides[1], self.strides[0]),
            (left, right, top, bottom),
            (self.phases[1], self.phases[0]),
            turned=not self.turned,
        )

    def spans(
        self, kernel: tuple[int, int], dilation: tuple[int, int] | None = None
    ) -> tuple[list[Span], list[Span]]:
        """Return the parts down and across in which a window goes over the input.

        dilation  of a window that may lose taps in its padding; None if it may not
        """
        sides = zip(self.shape[1:3], self.size, kernel, self.strides, strict=True)
        margins = self.pads[:2], self.pads[2:]
        down, across = (
            spans(size, count, reach, stride, (before, after))
            if phases == 1
            else _in_phases(size, count, reach, before, phases)
            for (size, count, reach, stride), (before, after), phases in zip(
                sides, margins, self.phases, strict=True
            )
        )
        if dilation is not None:
            down = [one for span in down for one in _cropped(span, kernel[0], dilation[0])]
            across = [one for span in across for one in _cropped(span, kernel[1], dilation[1])]
        need(len(down) * len(across) <= MOST_PIECES, "its strides are too long")
        return down, across

    def seen(self, view: View) -> View:
        """Return a value [N, H, W, C] as the windows see it."""
        return view.permuted((0, 2, 1, 3)) if self.turned else view
