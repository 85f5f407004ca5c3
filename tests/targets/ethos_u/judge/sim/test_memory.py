"""Feature maps in memory against the address of every single element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.judge.sim.memory import Layout, MapView, Memory, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import FeatureMap, Format, Where

SIZE = 1 << 14
BATCH = 2


def address(fm: FeatureMap, y: int, x: int, c: int) -> int:
    """The address formula of the feature map formats, element by element."""
    tile = 0
    if x >= fm.width_0:
        x -= fm.width_0
        tile = 1
        if y >= fm.height_1:
            y -= fm.height_1
            tile = 3
    elif y >= fm.height_0:
        y -= fm.height_0
        tile = 2
    size = fm.dtype.itemsize
    if fm.format is Format.NHWC:
        return fm.bases[tile] + y * fm.stride_y + x * fm.stride_x + c * size
    brick, inner = divmod(c, 16)
    return fm.bases[tile] + y * fm.stride_y + brick * fm.stride_c + (x * 16 + inner) * size


@st.composite
def feature_maps(draw: st.DrawFn) -> FeatureMap:
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    depth = draw(st.integers(1, 40))
    dtype = np.dtype(draw(st.sampled_from(["i1", "u1", "i2", "i4"])))
    size = dtype.itemsize
    gap = draw(st.sampled_from([0, 16]))
    bricks = -(-depth // 16)
    form = draw(st.sampled_from(Format))
    stride_x = depth * size + gap if form is Format.NHWC else 0
    stride_c = 16 * size * width + gap
    row = width * stride_x if form is Format.NHWC else bricks * stride_c
    tile_bytes = (row + gap) * height
    tile_bytes = -(-tile_bytes // 16) * 16
    bases = draw(st.permutations([0, tile_bytes, 2 * tile_bytes, 3 * tile_bytes]))
    return FeatureMap(
        region=1,
        bases=(bases[0], bases[1], bases[2], bases[3]),
        height_0=draw(st.integers(1, 5)),
        height_1=draw(st.integers(1, 5)),
        width_0=draw(st.integers(1, 5)),
        stride_y=row + gap,
        stride_x=stride_x,
        stride_c=stride_c,
        format=form,
        dtype=dtype,
        zero_point=0,
        height=height,
        width=width,
        depth=depth,
    )


def expected(fm: FeatureMap, image: np.ndarray) -> np.ndarray:
    size = fm.dtype.itemsize
    values = [
        [
            [int.from_bytes(image[a : a + size].tobytes(), "little") for c in range(fm.depth)
             for a in [address(fm, y, x, c)]]
            for x in range(fm.width)
        ]
        for y in range(fm.height)
    ]  # fmt: skip
    unsigned = np.array(values, f"u{size}")
    return unsigned.view(fm.dtype)


@given(feature_maps(), st.integers(0, 2**32 - 1))
def test_load_reads_the_addresses_of_the_formula(fm: FeatureMap, seed: int) -> None:
    memory = Memory(BATCH, {1: 4 * SIZE}, {})
    memory.regions[1][...] = np.random.default_rng(seed).integers(0, 256, (BATCH, 4 * SIZE))
    view = MapView(fm, memory, Workspace(), "ifm")
    loaded = view.load(0, BATCH)
    for image in range(BATCH):
        assert np.array_equal(loaded[image], expected(fm, memory.regions[1][image]))


@given(feature_maps(), st.integers(0, 2**32 - 1))
def test_commit_writes_what_load_reads_and_nothing_else(fm: FeatureMap, seed: int) -> None:
    memory = Memory(BATCH, {1: 4 * SIZE}, {})
    memory.regions[1][...] = 0x5A
    view = MapView(fm, memory, Workspace(), "ofm")
    rng = np.random.default_rng(seed)
    info = np.iinfo(fm.dtype)
    values = rng.integers(info.min, info.max + 1, (1, fm.height, fm.width, fm.depth))
    np.copyto(view.target(1, 2), values.astype(fm.dtype))
    view.commit(1, 2)
    assert np.array_equal(view.load(1, 2), values)
    touched = np.zeros(4 * SIZE, bool)
    for y in range(fm.height):
        for x in range(fm.width):
            for c in range(fm.depth):
                start = address(fm, y, x, c)
                touched[start : start + fm.dtype.itemsize] = True
    assert (memory.regions[1][1][~touched] == 0x5A).all()
    assert (memory.regions[1][0] == 0x5A).all()


WHERE = Where("OP_POOL", Origin("net.tflite", 3, "ADD", "sum", command=12))


def test_bytes_outside_a_region() -> None:
    layout = Layout({0: 64, 1: 128}, frozenset({0}))
    with pytest.raises(MizzenError) as caught:
        layout.check_range(1, 120, 16, WHERE)
    assert str(caught.value) == (
        "error[E631]: OP_POOL: bytes 120..136 must lie in region 1, which has 128 bytes\n"
        '  at   net.tflite, command at word 12, operator 3 ADD -> "sum"\n'
        "  help the command stream is damaged or belongs to another artifact"
    )


def test_a_region_that_does_not_exist() -> None:
    layout = Layout({0: 64, 1: 128}, frozenset({0}))
    with pytest.raises(MizzenError, match=r"region 5 must exist; the program has \[0, 1\]"):
        layout.check_range(5, 0, 1, WHERE)


def test_constants_are_not_written() -> None:
    layout = Layout({0: 64, 1: 128}, frozenset({0}))
    layout.check_range(0, 0, 64, WHERE)
    with pytest.raises(MizzenError, match=r"^error\[E632\]: OP_POOL: region 0 holds constants"):
        layout.check_range(0, 0, 1, WHERE, written=True)
