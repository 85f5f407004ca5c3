"""Streams of what only U85 does: its own operations, results in another order, chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.generator.arrange.chains import chained
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Activation,
    Chain,
    Elementwise,
    Kernel,
    Map,
    MatrixProduct,
    OperandScale,
    Order,
    Pooling,
    Resize,
    Role,
    Scalar,
    Scale,
    Sequence,
    Shape,
    Steps,
    Table,
)
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRangeU85,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    Layout,
    PoolingMode,
    PoolingModeU85,
    ResizeModeU85,
    ReverseU85,
    RoundMode,
    RoundModeOfmU85,
    TransposeU85,
)
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import resolve

from .chained_networks import chainable
from .chance_schedules import by_chance
from .program_judges import blockdeps, greatest_blockdeps, needless_waits, require_right
from .sequences import INT8, WHOLE_RANGE, Network
from .test_emit_operations import elementwise, ended, small_table

UINT8, INT16, INT32 = (np.dtype(kind) for kind in (np.uint8, np.int16, np.int32))
ONE, QUARTER = Scale(1, 0), Scale(1 << 30, 32)
LONG_RANGE = Activation(-(1 << 15), (1 << 15) - 1)
SAME = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
Maker = Callable[[], Sequence]


def pooled(
    net: Network, mode: PoolingMode | PoolingModeU85, ifm: Map, ofm: Map, **more: Any
) -> int:
    """Add a pool, of one element and with the whole range if nothing else is said."""
    kernel, scale = more.pop("kernel", Kernel()), more.pop("scale", ONE)
    activation = more.pop("activation", WHOLE_RANGE)
    origin = Origin(operator=len(net.operations))
    net.operations.append(Pooling(origin, mode, ifm, ofm, kernel, scale, activation, **more))
    return ofm.tensor


def permuted(shape: Shape, order: Order) -> Shape:
    """Return the shape that is stored of what is computed."""
    sides = {order.computed((1, 2, 3))[axis] - 1: shape[axis] for axis in range(3)}
    return sides[0], sides[1], sides[2]


def products() -> Sequence:
    """Two products, of a map that a pool brings into bricks and of one that it reads as it is."""
    net = Network()
    x, y = net.tensor((4, 9, 40), Role.INPUT), net.tensor((1, 21, 40), Role.INPUT)
    held = net.tensor((1, 21, 40), layout=Layout.NHCWB16)
    pooled(net, PoolingModeU85.SUM, net.whole(y), net.whole(held, 4))
    first, last = net.tensor((4, 9, 21)), net.tensor((21, 9, 4))
    for ofm, order in ((first, AS_COMPUTED), (last, Order(TransposeU85.CWH))):
        net.operations.append(
            MatrixProduct(
                Origin(), net.whole(x, -3), net.whole(held, 4), net.whole(ofm, 2),
                Scale(1 << 30, 40), WHOLE_RANGE, order=order,
            )
        )  # fmt: skip
    return ended(net, (x, y), first, last)


def resized() -> Sequence:
    """Both axes with steps of their own; of every mode."""
    net = Network()
    x = net.tensor((5, 4, 20), Role.INPUT)
    rows, columns, outputs = Steps(4, 2, -1), Steps(6, 2, 1), list[int]()
    for mode in ResizeModeU85:
        ofm, whole = net.tensor((9, 11, 20)), mode is not ResizeModeU85.BILINEAR
        scale = Scale(1, 16) if whole else Scale((1 << 30) // 24, 46)
        net.operations.append(
            Resize(
                Origin(), mode, net.whole(x, 3), net.whole(ofm, 3), rows, columns, scale,
                WHOLE_RANGE, RoundModeOfmU85.SYMMETRIC,
            )
        )  # fmt: skip
        outputs.append(ofm)
    last = net.add(outputs[0], outputs[1])
    return ended(net, (x,), last, outputs[2])


def reordered() -> Sequence:
    """Results in every order, each read by the next operation."""
    net = Network()
    shape = 5, 6, 20
    x = net.tensor(shape, Role.INPUT)
    outputs: list[int] = []
    for transpose in TransposeU85:
        for reverse in ReverseU85:
            order = Order(transpose, reverse)
            ofm = net.tensor(permuted(shape, order))
            if reverse is ReverseU85.W:
                net.convolution(x, 20, Kernel())
                net.operations[-1] = replace(
                    net.operations[-1],
                    ofm=net.whole(ofm, 3),
                    order=order,  # pyright: ignore[reportCallIssue]
                )
            else:
                pooled(net, PoolingModeU85.SUM, net.whole(x), net.whole(ofm), order=order)
            outputs.append(net.pool(ofm, PoolingMode.MAX, Kernel(2, 2)))
    return ended(net, (x,), *outputs)


def compared() -> Sequence:
    """Comparisons and logic, with either operand broadcast, and numbers as either of them."""
    net = Network()
    x, row = net.tensor((6, 7, 24), Role.INPUT), net.tensor((1, 7, 1), Role.INPUT)
    at = net.whole(x, 2)
    for place, mode in enumerate(ElementwiseModeU85):
        if mode.name in ElementwiseMode.__members__ or mode is ElementwiseModeU85.DIV:
            continue
        ofm = net.whole(net.tensor((6, 7, 24)), 2 * (place % 2))
        other = (net.whole(row, 1), Scalar(3, INT8, 1), at)[place % 3]
        first, second = (other, at) if place % 3 == 0 else (at, other)
        shifts = mode is ElementwiseModeU85.LSR
        if shifts:
            first, second = at, Scalar(2, INT8)
        if mode is ElementwiseModeU85.NOT:
            first, second = at, None
        assert isinstance(first, Map)
        elementwise(net, mode, first, second, ofm, reversed=place % 3 == 1 and not shifts)
        at = ofm
    return ended(net, (x, row), at.tensor)


def scaled() -> Sequence:
    """Operands with scales of their own, and slopes on both sides of zero."""
    net = Network()
    x, y = net.tensor((5, 6, 20), Role.INPUT), net.tensor((5, 1, 20), Role.INPUT)
    fine, coarse = OperandScale(1200 << 20, 12, RoundMode.DBL, 20), OperandScale(1 << 19, 0)
    sums, less, bent = (net.tensor((5, 6, 20)) for _ in range(3))
    more: dict[str, Any] = {"scale": Scale(1 << 30, 50)}
    elementwise(
        net, ElementwiseMode.ADD, net.whole(x, 3), net.whole(y, -2), net.whole(sums, 1),
        operand_scales=(fine, coarse), **more,
    )  # fmt: skip
    elementwise(
        net, ElementwiseMode.SUB, net.whole(sums, 1), net.whole(y), net.whole(less, 1),
        operand_scales=(coarse, fine), reversed=True, rounding=RoundModeOfmU85.NATURAL, **more,
    )  # fmt: skip
    elementwise(
        net, ElementwiseMode.LRELU, net.whole(less), None, net.whole(bent), scale=QUARTER,
        operand_scales=(OperandScale(3, 0), OperandScale(1 << 30, 31)),
    )  # fmt: skip
    words = net.tensor((5, 6, 20), dtype=INT32)
    wide = Activation(-128, 127, clip_range=ClipRangeU85.NONE)
    elementwise(
        net, ElementwiseMode.SHL, net.whole(bent), Scalar(20, INT8), net.whole(words),
        activation=wide,
    )  # fmt: skip
    return ended(net, (x, y), words)


def as_on_u55() -> Sequence:
    """Sums and slopes as U55 says them, with zero points of words, which it does not take off."""
    net = Network()
    x, y = net.tensor((4, 5, 24), Role.INPUT), net.tensor((4, 5, 24), Role.INPUT)
    outputs: list[int] = []
    for mode in IfmScaleMode:
        ofm = net.tensor((4, 5, 24))
        elementwise(
            net, ElementwiseMode.SUB, net.whole(x, 3), net.whole(y, 5), net.whole(ofm, 2),
            reversed=mode is IfmScaleMode.OPA_32, scale_mode=mode, ifm_rounding=RoundMode.DBL,
            scale=Scale(1 << 30, 46 if mode is IfmScaleMode.OPA_OPB_16 else 50),
            scale_a=Scale(1 << 15, 0) if mode is IfmScaleMode.OPA_OPB_16 else Scale(1 << 30, 12),
            scale_b=Scale(1 << 14, 0),
        )  # fmt: skip
        outputs.append(ofm)
    words, product = (net.tensor((4, 5, 24), dtype=INT32) for _ in range(2))
    no_sums = Activation(-128, 127)
    pooled(net, PoolingMode.AVERAGE, net.whole(outputs[0]), net.whole(words, 9), activation=no_sums)
    elementwise(
        net, ElementwiseMode.MUL, net.whole(words, 9), Scalar(5, INT32, 2), net.whole(product, 9),
        activation=LONG_RANGE, scale=Scale(1 << 30, 1),
    )  # fmt: skip
    return ended(net, (x, y), outputs[1], outputs[2], product)


def windows() -> Sequence:
    """Least, sums, quotients where there is padding, and places of what is greatest."""
    net = Network()
    x = net.tensor((8, 9, 20), Role.INPUT)
    outputs: list[int] = []
    for mode, kernel, scale in (
        (PoolingModeU85.MIN, SAME, ONE),
        (PoolingMode.MAX, SAME, QUARTER),
        (PoolingModeU85.SUM, Kernel(3, 5, 2, 2), Scale(1 << 30, 34)),
        (PoolingMode.AVERAGE, SAME, ONE),
    ):
        height = (8 + kernel.pad_top + kernel.pad_bottom - kernel.height) // kernel.stride_y + 1
        width = (9 + kernel.pad_left + kernel.pad_right - kernel.width) // kernel.stride_x + 1
        ofm = net.tensor((height, width, 20))
        whole = net.whole(ofm, 3)
        pooled(net, mode, net.whole(x, 3), whole, kernel=kernel, scale=scale)
        outputs.append(ofm)
    place = net.tensor((8, 1, 20), dtype=INT32)
    pooled(
        net, PoolingModeU85.ARGMAX_X, net.whole(x), net.whole(place), kernel=Kernel(1, 9),
        scale=Scale(1, 16), activation=LONG_RANGE,
    )  # fmt: skip
    return ended(net, (x,), *outputs, place)


def functions() -> Sequence:
    """Tables of every kind between one of bytes, and the curves that U55 has in hardware."""
    net, draw = Network(), np.random.default_rng(6)
    x, y = net.tensor((3, 5, 24), Role.INPUT), net.tensor((3, 5, 24), Role.INPUT, dtype=INT16)
    z = net.tensor((3, 5, 24), Role.INPUT, dtype=UINT8)
    small = draw.integers(-3000, 3000, 1024).astype(np.int16)
    outputs: list[int] = []
    for source, kind, activation in (
        (x, INT16, Activation(-128, 127, Table(small[:256].tobytes()))),
        (x, INT8, small_table(1)),
        (x, INT32, Activation(-128, 127, Table(small[:512].tobytes()))),
        (z, UINT8, Activation(0, 255, Table(bytes(range(255, -1, -1))))),
        (y, INT16, Activation(-32768, 32767, Table((small // 16).tobytes()))),
        (y, INT32, Activation(-32768, 32767, Table(small.tobytes()))),
        (x, INT8, small_table(1)),
        (y, INT16, Activation(-32768, 32767, None, "TANH")),
        (y, INT16, Activation(-32768, 32767, None, "SIGMOID")),
    ):
        ofm = net.tensor((3, 5, 24), dtype=kind)
        scale = Scale(5, 0) if activation.table is None else ONE
        pooled(
            net, PoolingMode.AVERAGE, net.whole(source), net.whole(ofm), scale=scale,
            activation=activation,
        )  # fmt: skip
        outputs.append(ofm)
    return ended(net, (x, y, z), *outputs)


def one_of_each_u85() -> Sequence:
    """An operation of each kind, over maps of few elements, two of them in a chain."""
    net = Network()
    ifm, y = net.tensor((4, 16, 9), Role.INPUT), net.tensor((1, 16, 16), Role.INPUT)
    first = net.convolution(ifm, 16, SAME)
    both = net.add(first, first)
    looked_up = net.pool(both, PoolingMode.AVERAGE, Kernel(), activation=small_table(3))
    large, twice = net.tensor((4, 32, 16)), Steps(4, 2, -1)
    net.operations.append(
        Resize(
            Origin(), ResizeModeU85.BILINEAR, net.whole(looked_up, 3), net.whole(large, 3),
            Steps(1, 1, 0), twice, Scale(1, 18), WHOLE_RANGE, RoundModeOfmU85.SYMMETRIC,
        )
    )  # fmt: skip
    held, product = net.tensor((1, 16, 16), layout=Layout.NHCWB16), net.tensor((4, 32, 16))
    pooled(net, PoolingModeU85.SUM, net.whole(y), net.whole(held, 4))
    net.operations.append(
        MatrixProduct(
            Origin(), net.whole(large, 3), net.whole(held, 4), net.whole(product, 2),
            Scale(1 << 30, 39), WHOLE_RANGE,
        )
    )  # fmt: skip
    narrow = net.convolution(product, 16, Kernel(2, 2, 2, 2))
    last, order = net.tensor((2, 16, 16)), Order(TransposeU85.HCW, ReverseU85.W)
    pooled(net, PoolingModeU85.MIN, net.whole(narrow, 3), net.whole(last, 3), order=order)
    return chained(ended(net, (ifm, y), last, large))


MAKERS: tuple[Maker, ...] = (
    products, resized, reordered, compared, scaled, as_on_u55, windows, functions, one_of_each_u85,
)  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_operations(make: Maker, name: str) -> None:
    sequence, accelerator = make(), ACCELERATORS[name]
    for seed in range(2):
        program = emit(by_chance(sequence, accelerator, seed), accelerator)
        require_right(program, sequence, accelerator)
        # What follows a result in another order waits for all of it; a chain has one BLOCKDEP.
        if make not in (reordered, one_of_each_u85):
            assert blockdeps(program)[1:] == greatest_blockdeps(program, accelerator)[1:]
        assert needless_waits(program, accelerator) == []


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ARRAYS)
def test_chains_by_chance(name: str, seed: int) -> None:
    sequence, accelerator = chained(chainable(seed)), ACCELERATORS[name]
    program = emit(by_chance(sequence, accelerator, seed), accelerator)
    require_right(program, sequence, accelerator)
    assert needless_waits(program, accelerator) == []


def test_tables_of_a_chain_that_are_too_long_are_refused() -> None:
    net = Network()
    x = net.tensor((1, 1, 16), Role.INPUT, dtype=INT16)
    links: list[Elementwise] = []
    for seed in range(2):
        data = np.random.default_rng(seed).integers(0, 9, 1024).astype(np.int16)
        ofm = net.whole(net.tensor((1, 1, 16), dtype=INT16))
        elementwise(
            net, ElementwiseMode.ABS, net.whole(ofm.tensor - 1), None, ofm,
            activation=Activation(-32768, 32767, Table(data.tobytes())),
        )  # fmt: skip
        made = net.operations.pop()
        assert isinstance(made, Elementwise)
        links.append(made)
    net.operations.append(Chain(tuple(links)))
    with pytest.raises(MizzenError, match="must fit into 2048 bytes together"):
        emit(plain(ended(net, (x,), 2), resolve("ethos-u85-256")), ACCELERATORS["ethos-u85-256"])


def test_an_operand_that_is_cut_off_is_refused() -> None:
    net = Network()
    x = net.tensor((1, 1, 16), Role.INPUT)
    net.add(x, x)
    net.operations[-1] = replace(net.operations[-1], ifm_rounding=RoundMode.TRUNCATE)  # pyright: ignore[reportCallIssue]
    with pytest.raises(MizzenError, match="must be rounded to the nearest, not by TRUNCATE"):
        emit(plain(ended(net, (x,), 1), resolve("ethos-u85-256")), ACCELERATORS["ethos-u85-256"])
