"""Copies of long runs are transfers, where the runs are few and whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.arrange import transferred
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Copy,
    Kernel,
    Map,
    Order,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
    Tensor,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    Layout,
    PoolingMode,
    PoolingModeU85,
    TransposeU85,
)

from .interpreter import is_same

INT8 = np.dtype(np.int8)


def shifted(rows: Shape, start: int = 1) -> Sequence:
    """Return a sequence that moves what is behind a row to the front of an output, as caches do."""
    height, width, depth = rows
    tensors = tuple(
        Tensor(name, rows, INT8, role, Layout.NHWC)
        for name, role in (("x", Role.INPUT), ("y", Role.OUTPUT))
    )
    shape = height, width - start, depth
    head = height, start, depth
    moves = (
        (Box(0, shape, (0, start, 0)), Box(1, shape)),
        (Box(0, head), Box(1, head, (0, shape[1], 0))),
    )
    operations = tuple(
        Pooling(
            Origin("made"),
            PoolingMode.AVERAGE,
            Map(source, INT8),
            Map(target, INT8),
            Kernel(),
            Scale(1, 0),
            Activation(-128, 127),
        )
        for source, target in moves
    )
    return Sequence(tensors, operations, (0,), (1,))


def test_long_runs_are_transferred() -> None:
    sequence = shifted((4, 32, 32))
    made = transferred(sequence)
    copies = [row for row in made.operations if isinstance(row, Copy)]
    assert [row.length_bytes for row in copies] == [31 * 32] * 4
    assert len(made.operations) == 5, "the short one stays"
    assert is_same(sequence, made)


@pytest.mark.parametrize(
    "shape",
    [(9, 32, 32), (2, 9, 16), (4, 32, 33)],
    ids=["too many runs", "too few bytes", "runs that begin between units"],
)
def test_other_copies_stay(shape: Shape) -> None:
    sequence = shifted(shape)
    assert transferred(sequence) is sequence


def test_what_is_transposed_or_scaled_stays() -> None:
    sequence = shifted((1, 33, 32), start=1)
    first, second = sequence.operations
    assert isinstance(first, Pooling)
    scaled = replace(first, scale=Scale(3, 1))
    turned = replace(
        first,
        ofm=Map(Box(1, (32, 1, 32)), INT8),
        order=Order(TransposeU85.WHC),
    )
    for operation in (scaled, turned):
        kept = replace(sequence, operations=(operation, second))
        assert transferred(kept) is kept


@pytest.mark.parametrize(
    ("dtype", "mode"),
    [(np.int16, PoolingMode.AVERAGE), (np.int32, PoolingModeU85.SUM)],
)
def test_wide_numbers_at_one_position_are_copied_as_bytes(
    dtype: type[np.integer[Any]], mode: PoolingMode | PoolingModeU85
) -> None:
    """A part of the input, into a part of the output."""
    wide, count = np.dtype(dtype), 112 * 4 // np.dtype(dtype).itemsize
    tensors = tuple(
        Tensor(name, (1, 1, count + 7), wide, role, Layout.NHWC)
        for name, role in (("x", Role.INPUT), ("y", Role.OUTPUT))
    )
    source, target = (Map(Box(index, (1, 1, count), (0, 0, 4 - index)), wide) for index in (0, 1))
    clip = Activation(-32768, 32767)
    copy = Pooling(Origin("made"), mode, source, target, Kernel(), Scale(1, 0), clip)
    rest = Pooling(
        Origin("made"),
        mode,
        Map(Box(0, (1, 1, 3)), wide),
        Map(Box(1, (1, 1, 3)), wide),
        Kernel(),
        Scale(1, 0),
        clip,
    )
    sequence = Sequence(tensors, (rest, copy), (0,), (1,))
    made = transferred(sequence)
    assert [row.ofm.dtype.itemsize for row in made.operations if isinstance(row, Pooling)] == [
        wide.itemsize,
        1,
    ]
    assert is_same(sequence, made)
