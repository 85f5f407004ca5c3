"""Operations that only carry a finish, or only move: what is behind a value that lies in memory.

8 and 16 bits go through an average of single elements, whose scale, clip and table are free; what
has a scale for each channel through a depthwise convolution with weights of one; 32 bits through
a product with the multiplier, since products of 32 bits are shifted and not scaled.

Ref: generator.md of the machine's facts, 4.3; registers of Ethos-U55, OFM_SCALE.
"""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.graph import DType
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, each
from mizzen.targets.ethos_u.generator.lower.finish import WIDE, Finish, plain
from mizzen.targets.ethos_u.generator.lower.lines import interpolated, is_wide_table
from mizzen.targets.ethos_u.generator.lower.narrowing import narrowed, narrows
from mizzen.targets.ethos_u.generator.lower.orders import each_stored
from mizzen.targets.ethos_u.generator.lower.planning import Site, input_zero
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.shuffling import shuffled
from mizzen.targets.ethos_u.generator.lower.views import View, pixels, rows
from mizzen.targets.ethos_u.generator.operations import (
    ChannelScales,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Pooling,
    Scalar,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    Arch,
    ElementwiseMode,
    PoolingMode,
    PoolingModeU85,
    RoundMode,
)

INT16 = np.dtype(np.int16)
INT32 = np.dtype(np.int32)
SCALAR_RANGE = (-32768, 32767)
"""A scalar operand has 16 bits."""

ONE = Scale(1, 0)


def carried(site: Site) -> Node:
    """Return the node that reads the root from memory and does the steps."""
    if narrows(site.steps[0]):
        return narrowed(site)
    if len(site.steps) == 1 and is_wide_table(site.steps[0]):
        return interpolated(site)
    finish = site.finish(scales=True)
    zero, origin = input_zero(site), site.origin
    need(site.root.dtype in (DType.INT8, DType.INT16, DType.INT32), "sums of 48 bits lie nowhere")
    if site.root.dtype is DType.INT32:
        need(len(finish.multipliers) == 1, "its channels have scales of their own")
        need(finish.entries is None or finish.dtype is DType.INT8, "its table gives wide integers")
    if len(finish.multipliers) > 1:
        need(site.root.shape[-1] == len(finish.multipliers), "its channels change their places")
        need(finish.dtype not in WIDE, "its channels have scales of their own")

    def write(emitter: Emitter, target: View) -> None:
        source = emitter.read(site.root)
        if len(finish.multipliers) > 1:
            by_channels(emitter, source, target, finish, zero, origin)
        elif site.root.dtype is DType.INT32:
            product(emitter, source, target, finish, origin)
        else:
            carry(emitter, source, target, finish, zero, origin)

    stores = site.stores if len(finish.multipliers) == 1 else pixels
    return site.node((site.root,), write, site.steps, stores=stores)


def carry(
    emitter: Emitter, source: View, target: View, finish: Finish, zero: int, origin: Origin
) -> None:
    """Add what does a finish to 8 or 16 bits of a view, and writes another of its shape."""
    for (ifm, ofm), order in each_stored(emitter, origin, source, target):
        if finish.dtype in WIDE:
            emitter.operations.append(
                Elementwise(
                    origin,
                    ElementwiseMode.MUL,
                    _zeroed(ifm, zero),
                    Scalar(1, ifm.dtype),
                    ofm,
                    finish.activation,
                    scale=finish.scale,
                    rounding=finish.rounding,
                    order=order,
                )
            )
            continue
        emitter.operations.append(
            Pooling(
                origin,
                PoolingMode.AVERAGE,
                _zeroed(ifm, zero),
                _zeroed(ofm, finish.zero_point),
                Kernel(),
                finish.scale,
                finish.activation,
                rounding=finish.rounding,
                order=order,
            )
        )


def _zeroed(row: Map, zero: int) -> Map:
    return Map(row.view, row.dtype, zero)


def product(emitter: Emitter, source: View, target: View, finish: Finish, origin: Origin) -> None:
    """Add what does a finish to 32 bits of a view.

    U85 scales them in a pool; others multiply with the multiplier and shift.
    """
    if emitter.arch is Arch.U85:
        _summed(emitter, source, target, finish, origin)
        return
    multiplier, shift = int(finish.multipliers[0]), int(finish.shifts[0])
    if finish.rounding is RoundMode.NATURAL or shift <= 31:
        while multiplier and shift and not multiplier & 1:
            multiplier, shift = multiplier >> 1, shift - 1
    second = by_number(emitter, multiplier)
    for views in each_with(emitter, source, second, target):
        ifm, ifm2, ofm = views
        emitter.operations.append(
            Elementwise(
                origin,
                ElementwiseMode.MUL,
                ifm,
                ifm2,
                _zeroed(ofm, finish.zero_point),
                finish.activation,
                scale=Scale(1, shift),
                rounding=finish.rounding,
            )
        )


def _summed(emitter: Emitter, source: View, target: View, finish: Finish, origin: Origin) -> None:
    """Add sums of single elements of 32 bits.

    Ref: registers of Ethos-U85, IFM_PRECISION: POOL SUM takes 32 bits where it is one position.
    """
    for (ifm, ofm), order in each_stored(emitter, origin, source, target):
        emitter.operations.append(
            Pooling(
                origin,
                PoolingModeU85.SUM,
                ifm,
                _zeroed(ofm, finish.zero_point),
                Kernel(),
                finish.scale,
                finish.activation,
                rounding=finish.rounding,
                order=order,
            )
        )


def fits_register(number: int, arch: Arch) -> bool:
    """Whether a number is an operand by itself: U85 has 32 bits for it, the others 16."""
    return arch is Arch.U85 or SCALAR_RANGE[0] <= number <= SCALAR_RANGE[1]


def by_number(emitter: Emitter, number: int) -> View | Scalar:
    """Return a number of 32 bits as an operand."""
    if fits_register(number, emitter.arch):
        return Scalar(number, INT32)
    return emitter.constant(np.array(number, np.int32).reshape(1, 1, 1))


def each_with(
    emitter: Emitter, source: View, second: View | Scalar, target: View
) -> list[tuple[Map, Map | Scalar, Map]]:
    """Return maps of a view, of a second operand that is a number or broadcast, of the target."""
    if isinstance(second, Scalar):
        return [(ifm, second, ofm) for ifm, ofm in each(emitter, source, target)]
    missing = len(target.shape) - len(second.shape)
    if missing < 0:
        second = View(
            second.tensor, second.offset, second.shape[-missing:], second.strides[-missing:]
        )
        missing = 0
    wide = View(
        second.tensor,
        second.offset,
        (*(1,) * missing, *second.shape),
        (*(1,) * missing, *second.strides),
    )
    return [(ifm, ifm2, ofm) for ifm, ifm2, ofm in each(emitter, source, wide, target)]


def by_channels(
    emitter: Emitter, source: View, target: View, finish: Finish, zero: int, origin: Origin
) -> None:
    """Add a depthwise convolution with weights of one."""
    channels = len(finish.multipliers)
    if not pixels(source):
        source = emitter.copied(source, origin)
    weights = np.ones((channels, 1, 1, 1), np.int16)
    nothing = np.zeros(channels, np.int64)
    shifts = np.broadcast_to(finish.shifts, channels)
    scales = ChannelScales(nothing, finish.multipliers, shifts.copy())
    for one, other in rows(source, target):
        ifm, ofm = emitter.map(one), emitter.map(other)
        emitter.operations.append(
            Convolution(
                origin,
                _zeroed(ifm, zero),
                _zeroed(ofm, finish.zero_point),
                Kernel(),
                weights,
                scales,
                finish.activation,
                depthwise=True,
                rounding=finish.rounding,
            )
        )


def copy(emitter: Emitter, source: View, target: View, origin: Origin) -> None:
    """Add what copies the elements of a view to another of its shape."""
    dtype = {1: DType.INT8, 2: DType.INT16, 4: DType.INT32}[emitter.dtype(source).itemsize]
    if dtype is DType.INT32:
        product(emitter, source, target, plain(dtype), origin)
    elif not _shuffles(emitter, dtype) or not shuffled(emitter, source, target, origin):
        carry(emitter, source, target, plain(dtype), 0, origin)


def _shuffles(emitter: Emitter, dtype: DType) -> bool:
    """Whether a convolution may move what lies beside each other; U85 stores in any order."""
    return dtype is DType.INT8 and emitter.arch is not Arch.U85
