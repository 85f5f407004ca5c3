"""Streams of each kind of operation and of map, in schedules by chance on every accelerator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Bytes,
    ChannelScales,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Map,
    Pooling,
    Role,
    Scalar,
    Scale,
    Sequence,
    Table,
    Tiles,
)
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS, CORES
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ClipRange,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    Layout,
    PoolingMode,
    RoundMode,
    UpscaleMode,
)
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .chance_schedules import by_chance
from .program_judges import require_right
from .sequences import WHOLE_RANGE, Network

SAME = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
INT8, INT16, INT32 = (np.dtype(kind) for kind in (np.int8, np.int16, np.int32))
Maker = Callable[[], Sequence]


def ended(net: Network, inputs: tuple[int, ...], *outputs: int) -> Sequence:
    """Return the sequence of a network, whose last tensors the caller sees."""
    for output in outputs:
        net.as_output(output)
    return net.sequence(inputs, outputs)


def elementwise(
    net: Network,
    mode: ElementwiseMode | ElementwiseModeU85,
    a: Map,
    b: Map | Scalar | None,
    ofm: Map,
    **more: Any,
) -> int:
    """Add an elementwise operation."""
    more.setdefault("activation", WHOLE_RANGE)
    origin = Origin(operator=len(net.operations))
    net.operations.append(Elementwise(origin, mode, a, b, ofm, **more))
    return ofm.tensor


def small_table(seed: int) -> Activation:
    """Return a function of int8, by chance."""
    data = np.random.default_rng(seed).integers(-128, 128, 256).astype(np.int8)
    return Activation(-128, 127, Table(data.tobytes()))


def broadcast_and_scalars() -> Sequence:
    net = Network()
    x, row = net.tensor((7, 9, 24), Role.INPUT), net.tensor((1, 1, 24), Role.INPUT)
    column = net.tensor((7, 1, 24), Role.INPUT)
    first = net.add(x, row)
    second = net.add(first, column)
    third = net.tensor((7, 9, 24))
    scale = Scale(1 << 30, 36)
    elementwise(
        net, ElementwiseMode.MUL, net.whole(second, 3), Scalar(17, INT8, 2), net.whole(third),
        scale=scale,
    )  # fmt: skip
    fourth = net.tensor((7, 9, 24))
    elementwise(
        net, ElementwiseMode.SUB, net.whole(third), Scalar(-9, INT8), net.whole(fourth, 4),
        reversed=True, scale=Scale(1 << 30, 49), scale_a=Scale(1 << 30, 11),
        scale_mode=IfmScaleMode.OPA_32,
    )  # fmt: skip
    fifth = net.tensor((7, 9, 24))
    elementwise(
        net, ElementwiseMode.MAX, net.whole(fourth, 4), net.whole(row, 4), net.whole(fifth, 4)
    )
    return ended(net, (x, row, column), fifth)


def one_operand() -> Sequence:
    net = Network()
    x = net.tensor((6, 5, 20), Role.INPUT)
    first, second = net.tensor((6, 5, 20)), net.tensor((6, 5, 20))
    elementwise(
        net, ElementwiseMode.LRELU, net.whole(x), None, net.whole(first), scale=Scale(1 << 30, 33)
    )
    elementwise(
        net, ElementwiseMode.ABS, net.whole(first), None, net.whole(second), scale=Scale(1, 0)
    )
    return ended(net, (x,), second)


def wide_integers() -> Sequence:
    """Sums over channels in 32 bits, shifts and leading zeros, and 16-bit operations."""
    net = Network()
    x = net.tensor((4, 6, 40), Role.INPUT)
    sums = net.tensor((4, 6, 1), dtype=INT32)
    net.operations.append(
        Pooling(
            Origin(), PoolingMode.REDUCE_SUM, net.whole(x), net.whole(sums), Kernel(),
            Scale(1, 0), Activation(-(1 << 31), (1 << 31) - 1),
        )
    )  # fmt: skip
    zeros, shifted = net.tensor((4, 6, 1), dtype=INT32), net.tensor((4, 6, 1), dtype=INT32)
    any_ = Activation(-(1 << 15), (1 << 15) - 1)
    elementwise(net, ElementwiseMode.CLZ, net.whole(sums), None, net.whole(zeros), activation=any_)
    elementwise(
        net, ElementwiseMode.SHR, net.whole(sums), net.whole(zeros), net.whole(shifted),
        activation=any_, rounding=RoundMode.NATURAL,
    )  # fmt: skip
    narrow = net.tensor((4, 6, 1), dtype=INT16)
    elementwise(
        net, ElementwiseMode.MUL, net.whole(shifted), Scalar(3, INT32), net.whole(narrow),
        activation=any_, scale=Scale(1 << 30, 2),
    )  # fmt: skip
    return ended(net, (x,), narrow)


def sixteen_bits() -> Sequence:
    net = Network()
    x = net.tensor((5, 5, 20), Role.INPUT, dtype=INT16)
    small = Activation(-(1 << 15), (1 << 15) - 1)
    first = net.tensor((5, 5, 20), dtype=INT16)
    elementwise(
        net, ElementwiseMode.MUL, net.whole(x), Scalar(40, INT16), net.whole(first),
        activation=small, scale=Scale(1 << 30, 36),
    )  # fmt: skip
    second = net.convolution(net.whole(first), 24, SAME, activation=small)
    made = net.operations[-1]
    assert isinstance(made, Convolution)
    short = ChannelScales(
        made.scales.biases, made.scales.multipliers >> 16, made.scales.shifts - 16
    )  # of 15 bits, as U85 has them beside wide accumulators
    net.operations[-1] = replace(made, accumulators=AccFormat.I40, scales=short)
    return ended(net, (x,), second)


def upscaled() -> Sequence:
    net = Network()
    x = net.tensor((5, 4, 12), Role.INPUT)
    outputs: list[int] = []
    for mode in (UpscaleMode.NEAREST, UpscaleMode.ZEROS):
        ofm = net.convolution(x, 16, Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1))
        output = net.tensor((10, 8, 16))
        made = net.operations[-1]
        net.operations[-1] = replace(made, upscale=mode, ofm=net.whole(output, 3))
        del ofm
        outputs.append(output)
    both = net.add(outputs[0], outputs[1])
    return ended(net, (x,), both)


def tables() -> Sequence:
    """Nine tables, so that one has to go, with operations without a table among them."""
    net = Network()
    x = net.tensor((3, 5, 16), Role.INPUT)
    at = x
    for index in range(11):
        number = index if index < 9 else 9 - index
        at = net.pool(at, PoolingMode.AVERAGE, Kernel(), activation=small_table(abs(number)))
        if index % 4 == 3:
            at = net.convolution(at, 16, Kernel())
    return ended(net, (x,), at)


def table_of_words() -> Sequence:
    """A table of 32-bit entries after one of bytes."""
    net = Network()
    x = net.tensor((3, 5, 16), Role.INPUT)
    first = net.pool(x, PoolingMode.AVERAGE, Kernel(), activation=small_table(1))
    entries = np.random.default_rng(5).integers(-9999, 9999, 256).astype(np.int32)
    ofm = net.tensor((3, 5, 16), dtype=INT32)
    activation = Activation(-128, 127, Table(entries.tobytes()), clip_range=ClipRange.FORCE_INT8)
    elementwise(
        net, ElementwiseMode.SUB, net.whole(first), net.whole(x), net.whole(ofm),
        activation=activation, scale=Scale(1 << 30, 46), scale_a=Scale(1 << 15, 0),
        scale_b=Scale(1 << 15, 0),
    )  # fmt: skip
    last = net.pool(x, PoolingMode.AVERAGE, Kernel(), activation=small_table(1))
    return ended(net, (x,), ofm, last)


def concatenated() -> Sequence:
    """Three operations write parts of one tensor, two others read parts of it."""
    net = Network()
    x = net.tensor((6, 8, 16), Role.INPUT)
    whole = net.tensor((6, 8, 52))
    for start, depth in ((0, 16), (16, 32), (48, 4)):
        net.convolution(x, depth, Kernel())
        box = Box(whole, (6, 8, depth), (0, 0, start))
        net.operations[-1] = replace(net.operations[-1], ofm=Map(box, INT8, 3))
    part = Map(Box(whole, (5, 6, 36), (1, 2, 16)), INT8, 3)
    first = net.convolution(part, 24, Kernel(3, 3))
    second = net.pool(Map(Box(whole, (3, 8, 52), (0, 0, 0), (2, 1)), INT8, 3),
                      PoolingMode.MAX, Kernel(2, 2))  # fmt: skip
    return ended(net, (x,), first, second)


def strided() -> Sequence:
    """Every second column and row of a tensor, written by four operations."""
    net = Network()
    x = net.tensor((5, 6, 24), Role.INPUT)
    whole = net.tensor((10, 12, 24), Role.OUTPUT)
    for y in range(2):
        for column in range(2):
            net.convolution(x, 24, Kernel(), depthwise=True)
            box = Box(whole, (5, 6, 24), (y, column, 0), (2, 2))
            net.operations[-1] = replace(net.operations[-1], ofm=Map(box, INT8, 3))
    return net.sequence((x,), (whole,))


def other_shapes() -> Sequence:
    """A tensor read as bytes of another shape, from two tiles, and in bricks as it must lie."""
    net = Network()
    x = net.tensor((4, 6, 16), Role.INPUT)
    held = net.convolution(x, 32, Kernel())
    net.tensors[held] = replace(net.tensors[held], layout=Layout.NHWC)
    flat = Map(Bytes(held, (8, 12, 8), 0, (96, 8, 1)), INT8, 3)
    first = net.convolution(flat, 16, SAME)
    tiles = Tiles(2, 4, 6, (0, 0, 0))
    wrapped = Bytes(held, (4, 6, 32), 2 * 192, (192, 32, 1), tiles=tiles)
    second = net.pool(Map(wrapped, INT8, 3), PoolingMode.MAX, Kernel(2, 2))
    fixed = net.convolution(first, 40, Kernel())
    net.tensors[fixed] = replace(net.tensors[fixed], layout=Layout.NHCWB16)
    bricks = Bytes(fixed, (8, 12, 16), 16 * 12, (16 * 12 * 3, 16, 16 * 12), Layout.NHCWB16)
    third = net.convolution(Map(bricks, INT8, 3), 8, Kernel())
    return ended(net, (x,), first, second, third)


def copied() -> Sequence:
    """Transfers between tensors and out of constants, and constants as operands."""
    net = Network()
    x = net.tensor((4, 4, 16), Role.INPUT)
    numbers = net.generator.integers(0, 256, 256).astype(np.uint8)
    constant = net.tensor((4, 4, 16), Role.CONSTANT, data=numbers)
    again = net.tensor((4, 4, 16), Role.CONSTANT, data=numbers.copy())
    doubled = net.tensor((8, 4, 16))
    net.operations.append(Copy(Origin(), x, 0, doubled, 256, 256))
    net.operations.append(Copy(Origin(), constant, 0, doubled, 0, 256))
    first = net.convolution(doubled, 16, SAME)
    second = net.add(x, constant)
    third = net.add(second, again)
    return ended(net, (x,), first, third)


def in_place() -> Sequence:
    """Operations whose input dies with them, and one whose input lives on."""
    net = Network()
    x = net.tensor((7, 8, 24), Role.INPUT)
    first = net.convolution(x, 24, Kernel())
    second = net.convolution(x, 24, Kernel())
    third = net.add(first, second)
    fourth = net.pool(third, PoolingMode.AVERAGE, Kernel(), activation=small_table(3))
    fifth = net.add(fourth, second)
    return ended(net, (x,), fifth)


def one_of_each() -> Sequence:
    """An operation of each kind, over maps of few elements."""
    net = Network()
    ifm = net.tensor((4, 4, 9), Role.INPUT)
    first = net.convolution(ifm, 16, Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1))
    both = net.add(first, first)
    narrow = net.pool(both, PoolingMode.MAX, Kernel(2, 2, 2, 2))
    looked_up = net.pool(narrow, PoolingMode.AVERAGE, Kernel(), activation=small_table(3))
    scaled = net.tensor(net.tensors[looked_up].shape)
    elementwise(
        net, ElementwiseMode.MUL, net.whole(looked_up, 3), Scalar(17, INT8, 2),
        net.whole(scaled, 3), scale=Scale(1 << 30, 34),
    )  # fmt: skip
    last = net.convolution(scaled, 11, Kernel())
    net.as_output(last)
    return net.sequence((ifm,), (last,))


MAKERS: tuple[Maker, ...] = (
    broadcast_and_scalars, one_operand, wide_integers, sixteen_bits, upscaled, tables,
    table_of_words, concatenated, strided, other_shapes, copied, in_place,
)  # fmt: skip


@pytest.mark.parametrize("name", [*CORES, *ARRAYS])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_operations(make: Maker, name: str) -> None:
    sequence, accelerator = make(), ACCELERATORS[name]
    for seed in range(2):
        program = emit(by_chance(sequence, accelerator, seed), accelerator)
        require_right(program, sequence, accelerator)
