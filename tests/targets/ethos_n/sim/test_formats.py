"""Layouts: the place of every element, and what is not there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.targets.ethos_n.commands_values import DataTypeCode, Format, TensorRecord
from mizzen.targets.ethos_n.sim.dram import (
    FORMATS,
    flattened,
    read,
    required_bytes,
    write,
)

from .assembler import tensor

BlockSlice = tuple[int, int, int]


def offset(format_: Format, whole: BlockSlice, place: BlockSlice) -> int:
    """The byte of an element, as the layouts are written down."""
    (height, width, depth), (y, x, c) = whole, place
    match format_:
        case Format.NHWC:
            return (y * width + x) * depth + c
        case Format.NCHW:
            return (c * height + y) * width + x
        case _:
            across, deep = -(-width // 8), -(-depth // 16)
            group = (y // 8 * across + x // 8) * deep + c // 16
            brick = x % 8 // 4 * 2 + y % 8 // 4
            return group * 1024 + (brick * 16 + c % 16) * 16 + y % 4 * 4 + x % 4


@st.composite
def records(draw: st.DrawFn) -> TensorRecord:
    """Tensors that are parts of larger ones, as whole cells."""
    format_ = draw(st.sampled_from(sorted(FORMATS)))
    whole: list[int] = []
    starts: list[int] = []
    extents: list[int] = []
    for cell in FORMATS[format_].cell:
        full = draw(st.integers(1, 40))
        start = draw(st.integers(0, (full - 1) // cell)) * cell
        cells = draw(st.integers(1, -(-(full - start) // cell)))
        whole.append(full)
        starts.append(start)
        extents.append(min(cells * cell, full - start))
    record = tensor((extents[0], extents[1], extents[2]), 1, 0)
    return replace(
        record,
        format=format_,
        supertensor_shape=(1, *whole),
        supertensor_offset=(0, *starts),
        data_type=draw(st.sampled_from(DataTypeCode)),
    )


@given(records(), st.integers(0, 1 << 32))
@settings(max_examples=60)
def test_every_element_is_at_its_place(record: TensorRecord, seed: int) -> None:
    random = np.random.default_rng(seed)
    dtype = np.int8 if record.data_type is DataTypeCode.S8 else np.uint8
    values = random.integers(0, 256, (2, *record.shape[1:]), np.uint8).view(dtype)
    buffer = np.full((2, required_bytes(record) + 3), 77, np.uint8)
    write(buffer, record, values)
    np.testing.assert_array_equal(read(buffer, record), values)
    _, height, width, depth = record.supertensor_shape
    starts = record.supertensor_offset[1:]
    for _ in range(20):
        place = tuple(int(random.integers(n)) for n in record.shape[1:])
        y, x, c = (a + b for a, b in zip(place, starts, strict=True))
        at = offset(record.format, (height, width, depth), (y, x, c))
        np.testing.assert_array_equal(buffer[:, at].view(dtype), values[:, *place])


@given(records())
@settings(max_examples=30)
def test_only_the_part_is_written(record: TensorRecord) -> None:
    """What lies outside of the part, and of the last brick group that it fills, stays."""
    whole = replace(record, shape=record.supertensor_shape, supertensor_offset=(0, 0, 0, 0))
    buffer = np.zeros((1, required_bytes(record)), np.uint8)
    write(buffer, whole, np.full(whole.shape, 5, np.uint8))
    write(buffer, record, np.full(record.shape, 9, np.uint8))
    expected = np.full(whole.shape, 5, np.uint8)
    parts = zip(record.supertensor_offset, record.shape, strict=True)
    expected[tuple(slice(start, start + extent) for start, extent in parts)] = 9
    np.testing.assert_array_equal(read(buffer, whole).view(np.uint8), expected)


@pytest.mark.parametrize(
    ("format_", "size"),
    [
        (Format.NHWC, 112 * 112 * 51),
        (Format.NHWCB, 14 * 14 * 4 * 1024),
        (Format.FCAF_DEEP, 14 * 14 * 2 * 2112),
        (Format.FCAF_WIDE, 14 * 7 * 4 * 2112),
    ],
)
def test_sizes_are_those_of_arms_buffers(format_: Format, size: int) -> None:
    """Ref: buffers of the compiled MobileNet, 827904 bytes for the third."""
    assert required_bytes(tensor((112, 112, 51), 1, 0, format=format_)) == size


@pytest.mark.parametrize("extents", [(8, 8, 32), (4, 4, 5), (8, 4, 16)])
def test_what_is_flat_is_in_the_order_of_bytes(extents: BlockSlice) -> None:
    record = tensor(extents, 1, 0, format=Format.NHWCB)
    buffer = np.random.default_rng(1).integers(0, 256, (2, required_bytes(record)), np.uint8)
    dense = read(buffer, record)
    count = math.prod(extents) if extents[0] == 8 and extents[1] == 8 else 16 * extents[2]
    np.testing.assert_array_equal(flattened(dense, count), buffer[:, :count])
