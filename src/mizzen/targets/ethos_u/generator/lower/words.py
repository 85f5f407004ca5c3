"""Operations that a rule is composed of: on integers of 32 bits, and over rows [N, C]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mizzen.diagnostics import Origin
from mizzen.graph import DType, integer_range
from mizzen.targets.ethos_u.generator.lower.carrying import (
    INT16,
    INT32,
    ONE,
    by_number,
    carry,
    each_with,
)
from mizzen.targets.ethos_u.generator.lower.context import Emitter, each
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE, plain
from mizzen.targets.ethos_u.generator.lower.views import MOST, View, rows
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Kernel,
    Pooling,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    Arch,
    ElementwiseMode,
    ElementwiseModeU85,
    PoolingMode,
    RoundMode,
)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Adds operations on integers of 32 bits; each gives a new tensor."""

    emitter: Emitter
    origin: Origin

    def __call__(
        self,
        mode: ElementwiseMode | ElementwiseModeU85,
        first: View,
        second: View | int | None = None,
        *,
        shift: int = 0,
        turned: bool = False,
    ) -> View:
        """Return first and second combined; shifted right by `shift` after a product."""
        made = self.emitter.tensor(mode.name.lower(), first.shape, INT32)
        activation = Activation(*NARROW_RANGE)
        operand = by_number(self.emitter, second) if isinstance(second, int) else second
        summed = mode in (ElementwiseMode.ADD, ElementwiseMode.SUB)
        scale = Scale(1, shift) if mode is ElementwiseMode.MUL else ONE if summed else None
        if operand is None:
            rows = [(ifm, None, ofm) for ifm, ofm in each(self.emitter, first, made)]
        else:
            rows = each_with(self.emitter, first, operand, made)
        for ifm, ifm2, ofm in rows:
            self.emitter.operations.append(
                Elementwise(
                    self.origin,
                    mode,
                    ifm,
                    ifm2,
                    ofm,
                    activation,
                    reversed=turned,
                    scale=scale,
                    scale_a=ONE if summed else None,
                    scale_b=ONE if summed else None,
                    rounding=RoundMode.NATURAL,
                )
            )
        return made


def greatest_of_rows(emitter: Emitter, origin: Origin, view: View) -> View:
    """Add what finds the greatest of each row [N, C]: a window as wide as a row, of one channel."""
    dtype = emitter.dtype(view)
    made = emitter.tensor("greatest", (view.shape[0], 1), dtype)
    low, high = integer_range(DType.INT8 if dtype.itemsize == 1 else DType.INT16)
    for one, place in _images(emitter, origin, view, made):
        emitter.operations.append(
            Pooling(
                origin,
                PoolingMode.MAX,
                emitter.map(one),
                emitter.map(place),
                Kernel(1, view.shape[1]),
                ONE,
                Activation(low, high),
            )
        )
    return made


FEWEST_TURNED = 8
"""Rows from which U85 makes channels of them first: a window of one channel leaves others idle."""


def _images(
    emitter: Emitter, origin: Origin, view: View, made: View
) -> Iterator[tuple[View, View]]:
    """Return images of rows [N, C], as wide as a row, and of what is made of each row."""
    count, depth = view.shape
    if emitter.arch is not Arch.U85 or not FEWEST_TURNED <= count <= MOST:
        for one, place in rows(view, made):
            yield _of_one_channel(one, view.strides[1]), _of_one_channel(place, made.strides[1])
        return
    turned = emitter.tensor("turned", (depth, count), emitter.dtype(view))
    emitter.copy(view.permuted((1, 0)), turned, origin)
    image = replace(turned, shape=(1, depth, count), strides=(depth * count, count, 1))
    yield image, replace(made, shape=(1, 1, count), strides=(count, count, 1))


def _of_one_channel(view: View, stride: int) -> View:
    """Return rows [1, N, C], whose elements are `stride` apart, as an image [N, C, 1]."""
    _, height, width = view.shape
    return View(view.tensor, view.offset, (height, width, 1), (view.strides[1], stride, 1))


def sums_of_rows(emitter: Emitter, origin: Origin, view: View) -> View:
    """Add what sums up each row [N, C], in 32 bits."""
    made = emitter.tensor("sum", (view.shape[0], 1), INT32)
    for one, place in rows(summable(emitter, origin, view, 0)[0], made):
        emitter.operations.append(
            Pooling(
                origin,
                PoolingMode.REDUCE_SUM,
                emitter.map(one),
                emitter.map(place),
                Kernel(),
                ONE,
                Activation(*NARROW_RANGE),
                rounding=RoundMode.NATURAL,
            )
        )
    return made


def summable(emitter: Emitter, origin: Origin, view: View, zero: int) -> tuple[View, int]:
    """Return what REDUCE_SUM reads of a view, and its zero point: on U85 not 16 bits but 32.

    Of Arm's model of Corstone-320 it is reported that sums of 16 bits come out as zeros; why was
    not published.

    Ref: ethos-u-vela issue 23; ExecuTorch pull requests 19319 and 19594.
    """
    if emitter.arch is not Arch.U85 or emitter.dtype(view).itemsize != INT16.itemsize:
        return view, zero
    wide = emitter.scratch(view, "wide", INT32)
    carry(emitter, view, wide, plain(DType.INT32), zero, origin)
    return wide, 0
