"""Stripes, tiles, blocks and the sizes of weights, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Format,
    MceOperation,
    PleOperation,
    Strategy,
    Upsample,
)
from mizzen.targets.ethos_n.config import BLOCK_CONFIGS, VARIANTS, BlockConfig, capabilities_of
from mizzen.targets.ethos_n.lower.work_graph import SAME_SHAPE, Ratio, ShapeRatio
from mizzen.targets.ethos_n.schedule.attempt import (
    Holes,
    Tile,
    brick_bytes,
    cell_bytes,
    consists_of_cells,
)
from mizzen.targets.ethos_n.schedule.mce_pass import best_algorithm, covered_kernel
from mizzen.targets.ethos_n.schedule.stripes import (
    Cut,
    Piece,
    Request,
    Stage,
    best_first,
    boundary_height,
    cut,
    input_extent,
    largest_weight_bytes,
    place,
    reaches_neighbours,
    stripe_channels,
    submaps,
    usable_blocks,
    widest_first,
)
from mizzen.targets.ethos_n.tensors import DataFormat, Shape

SIXTEEN = capabilities_of(VARIANTS["ethos-n78-4tops-4ple"])
EIGHT = capabilities_of(VARIANTS["ethos-n78-1tops-2ple"])
HALVED = ShapeRatio(Ratio(1, 2), Ratio(1, 2))
BLOCK = BlockConfig(16, 16)


def stage(
    shape: Shape = (1, 64, 64, 32), outputs: int = 64, kernel: tuple[int, int] = (3, 3)
) -> Stage:
    """A convolution of stride 1 whose planes stay as large."""
    n, height, width, channels = shape
    output = (n, height, width, outputs)
    return Stage(
        operation=MceOperation.CONVOLUTION,
        input=shape,
        mce_output=output,
        output=output,
        kernel=(*kernel, channels, outputs),
        weight_format=DataFormat.HWIO,
        mce_ratio=SAME_SHAPE,
        ple_ratio=SAME_SHAPE,
        upsample=Upsample.OFF,
        pad_top=1,
        pad_left=1,
        input_offset_bytes=None,
        deepest_stripe=None,
    )


def depthwise(shape: Shape = (1, 64, 64, 32)) -> Stage:
    return replace(
        stage(shape, shape[3]),
        operation=MceOperation.DEPTHWISE_CONVOLUTION,
        kernel=(3, 3, shape[3], 1),
        weight_format=DataFormat.HWIM,
    )


def found(stage: Stage, request: Request) -> Cut:
    parts = cut(stage, request, SIXTEEN)
    assert parts is not None
    return parts


def test_sizes_of_weights_that_cannot_be_compressed() -> None:
    """Nine bits a weight, 41 + 14 bytes of headers a channel; 16 generators share the channels."""
    channel = 9 * 3 * 3 * 128 // 8 + 41 + 14
    assert largest_weight_bytes((3, 3, 128, 64), DataFormat.HWIO, SIXTEEN) == 16 * (4 * channel + 4)
    # Input channels count in whole turns of the input generators.
    assert largest_weight_bytes((3, 3, 113, 64), DataFormat.HWIO, SIXTEEN) == 86_528
    # One tap, in the lanes of 3 turns: 9 * 3 bits are 4 bytes; 59 for each of two channels a bank.
    assert largest_weight_bytes((1, 1, 32, 1), DataFormat.HWIM, SIXTEEN) == 16 * 128


@pytest.mark.parametrize(
    ("kernel", "algorithm", "covered"),
    [
        # 16 multiplications for 2 x 2 results, against 4 * 9.
        ((3, 3), Algorithm.WINOGRAD, (3, 3)),
        ((1, 1), Algorithm.DIRECT, (1, 1)),
        # 16 for 2 x 4 results, against 8 * 3.
        ((1, 3), Algorithm.WINOGRAD, (1, 3)),
        ((1, 2), Algorithm.DIRECT, (1, 2)),
        # 16 against 4 * 4: the direct one if equal.
        ((2, 2), Algorithm.DIRECT, (2, 2)),
        ((5, 5), Algorithm.WINOGRAD, (6, 6)),
        ((9, 1), Algorithm.WINOGRAD, (9, 1)),
    ],
)
def test_algorithm_of_fewer_multiplications(
    kernel: tuple[int, int], algorithm: Algorithm, covered: tuple[int, int]
) -> None:
    assert best_algorithm(*kernel) is algorithm
    assert covered_kernel((*kernel, 16, 16), algorithm) == (*covered, 16, 16)


def test_wide_kernels_are_whole_parts_for_the_direct_algorithm_too() -> None:
    assert covered_kernel((8, 7, 16, 16), Algorithm.DIRECT) == (9, 9, 16, 16)
    assert covered_kernel((7, 7, 16, 16), Algorithm.DIRECT) == (7, 7, 16, 16)


def blocks(*names: str) -> tuple[BlockConfig, ...]:
    return tuple(block for name in names for block in BLOCK_CONFIGS if str(block) == name)


def test_blocks_that_all_parts_of_a_pass_can_work_with() -> None:
    plain = (MceOperation.CONVOLUTION, (3, 3), Algorithm.DIRECT, PleOperation.PASSTHROUGH)
    assert usable_blocks(BLOCK_CONFIGS, *plain, SIXTEEN) == BLOCK_CONFIGS
    # 512 accumulators a generator; Winograd's take four times as many, or twice.
    winograd = (MceOperation.CONVOLUTION, (3, 3), Algorithm.WINOGRAD, PleOperation.PASSTHROUGH)
    assert usable_blocks(BLOCK_CONFIGS, *winograd, SIXTEEN) == blocks("16x8", "8x16", "8x8")
    row = (MceOperation.CONVOLUTION, (1, 3), Algorithm.WINOGRAD, PleOperation.PASSTHROUGH)
    assert usable_blocks(BLOCK_CONFIGS, *row, SIXTEEN) == BLOCK_CONFIGS
    interleave = (*plain[:3], PleOperation.INTERLEAVE_2X2_2_2)
    assert usable_blocks(BLOCK_CONFIGS, *interleave, SIXTEEN) == blocks("16x16")
    matrix = (MceOperation.FULLY_CONNECTED, *plain[1:])
    assert usable_blocks(BLOCK_CONFIGS, *matrix, SIXTEEN) == blocks("8x8")


@pytest.mark.parametrize(
    ("plane", "kernel", "first"),
    [
        ((8, 8), (3, 3), "8x8"),
        ((8, 16), (3, 3), "16x8"),
        ((7, 31), (3, 3), "32x8"),
        # Larger than all, and no rest anywhere: the longest across the kernel's shorter side.
        ((64, 64), (3, 3), "8x32"),
        ((64, 64), (1, 3), "32x8"),
    ],
)
def test_best_block(plane: tuple[int, int], kernel: tuple[int, int], first: str) -> None:
    assert str(best_first(BLOCK_CONFIGS, (1, *plane, 16), kernel)[0]) == first


def test_widest_blocks_first() -> None:
    assert [str(block) for block in widest_first(BLOCK_CONFIGS)] == [
        "32x8", "16x16", "16x8", "8x32", "8x16", "8x8",
    ]  # fmt: skip


def test_everything_at_once() -> None:
    parts = found(stage(), Request(64, 64, 64))
    assert parts.input == Piece((1, 64, 64, 32), 64 * 64 * 32, 1)
    assert parts.output == Piece((1, 64, 64, 64), 64 * 64 * 64, 1)
    each = largest_weight_bytes((3, 3, 32, 64), DataFormat.HWIO, SIXTEEN)
    assert parts.weights == Piece((3, 3, 32, 64), each, 1)


def test_rows_have_room_for_their_neighbours_and_the_next() -> None:
    """Of four stripes three are worked on, and perhaps the next is loaded."""
    for stripes in (3, 4):
        parts = found(stage(), Request(16, 64, 64, input_stripes=stripes))
        assert parts.input == Piece((1, 16, 64, 32), stripes * 16 * 64 * 32, stripes)
        assert parts.output == Piece((1, 16, 64, 64), 2 * 16 * 64 * 64, 2)
    # A kernel of one row needs no neighbours.
    parts = found(stage(kernel=(1, 1)), Request(16, 64, 64, input_stripes=4))
    assert parts.input.stripes == 2


def test_the_last_stripe_takes_no_more_room_than_there_is() -> None:
    """Three stripes of 32 rows are 96; 72 rows, 9 brick groups, are all that there are."""
    parts = found(stage((1, 70, 64, 32)), Request(32, 64, 64))
    assert parts.input == Piece((1, 32, 64, 32), 72 * 64 * 32, 3)


def test_output_channels_cut_the_weights_only() -> None:
    parts = found(stage(), Request(64, 64, 24, weight_stripes=3))
    # Several brick groups deep, a stripe is whole brick groups.
    assert parts.output.stripe == (1, 64, 64, 32)
    assert parts.weights.stripe == (3, 3, 32, 32)
    assert parts.weights.stripes == 2
    assert parts.input.stripe == (1, 64, 64, 32)


def test_planes_cut_both_ways_keep_rows_of_neighbours_apart() -> None:
    parts = found(stage(), Request(16, 16, 64))
    slots = SIXTEEN.boundary_slots * SIXTEEN.boundary_stripe_height * 16 * 32
    assert parts.input == Piece((1, 16, 16, 32), 3 * 16 * 16 * 32 + slots, 3)


def test_a_kernel_reaches_no_further_than_one_stripe() -> None:
    wide = stage(kernel=(19, 1))
    assert cut(wide, Request(8, 64, 64), SIXTEEN) is None
    assert cut(wide, Request(16, 64, 64), SIXTEEN) is not None
    assert reaches_neighbours(wide, 9, 64, 0)
    assert not reaches_neighbours(wide, 8, 64, 0)
    # Where planes are cut both ways, neighbours' rows are as many as there are slots for.
    assert boundary_height(wide, 16, 16, SIXTEEN) == 8
    assert not reaches_neighbours(wide, 32, 32, 8)
    assert boundary_height(stage(kernel=(1, 3)), 16, 16, SIXTEEN) == 0


def test_a_pooling_halves_the_output_stripe() -> None:
    pooled = replace(stage(), output=(1, 32, 32, 64), ple_ratio=HALVED)
    parts = found(pooled, Request(8, 32, 64))
    assert (parts.output.stripe, parts.input.stripe) == ((1, 8, 32, 64), (1, 16, 64, 32))


def test_channels_of_a_depthwise_convolution_are_cut_with_the_input() -> None:
    parts = found(depthwise(), Request(16, 64, 16))
    assert parts.input.stripe == (1, 16, 64, 16)
    assert parts.weights.stripe == (3, 3, 16, 1)


def test_submaps_of_an_interleaved_input() -> None:
    assert submaps(stage(), SIXTEEN) == 1
    assert submaps(replace(stage((1, 32, 32, 128)), kernel=(3, 3, 32, 64)), SIXTEEN) == 4


def test_maps_in_sram_are_read_as_a_whole() -> None:
    kept = replace(stage(), input_offset_bytes=4096)
    parts = found(kept, Request(16, 64, 64))
    assert (parts.input.stripes, parts.input.bytes) == (4, 64 * 64 * 32)
    # No more stripes than the engine counts.
    assert cut(kept, Request(4, 64, 64), SIXTEEN) is not None
    tall = replace(stage((1, 128, 64, 32)), input_offset_bytes=4096)
    assert cut(tall, Request(8, 64, 64), SIXTEEN) is None


@pytest.mark.parametrize(
    ("whole", "requested", "rounded"),
    [(64, 64, 64), (64, 20, 32), (64, 16, 16), (64, 3, 16), (20, 20, 32), (8, 8, 16)],
)
def test_channels_of_a_stripe(whole: int, requested: int, rounded: int) -> None:
    assert stripe_channels(whole, requested, SAME_SHAPE, SIXTEEN) == rounded


def test_eight_banks_take_eight_channels() -> None:
    assert stripe_channels(64, 3, SAME_SHAPE, EIGHT) == 8


@pytest.mark.parametrize(
    ("output", "whole", "stripe", "ratio", "extent"),
    [(64, 64, 16, Ratio(), 16), (32, 64, 8, Ratio(1, 2), 16), (32, 63, 32, Ratio(1, 2), 64)],
)
def test_rows_that_rows_are_made_of(
    output: int, whole: int, stripe: int, ratio: Ratio, extent: int
) -> None:
    assert input_extent(output, whole, stripe, ratio) == extent


def pieces(*sizes: int) -> Cut:
    return Cut(*(Piece((1, 8, 8, 16), size * 16, 1) for size in sizes))


def placed(holes: Holes, input_offset: int | None = None) -> tuple[int, ...] | None:
    plan = place(pieces(100, 50, 20), Strategy.STRATEGY_3, BLOCK, input_offset, holes, SIXTEEN)
    if plan is None:
        return None
    assert plan.input == Tile((1, 8, 8, 16), 1600, 1, plan.input.offset_bytes)
    tiles = plan.input, plan.weights, plan.output
    return (plan.ple_offset_bytes, *(tile.offset_bytes for tile in tiles))


def test_places_of_kernel_input_weights_and_output() -> None:
    bank = SIXTEEN.sram_bytes // SIXTEEN.srams
    # The kernel takes 4096 bytes; the output goes to the far end from the input.
    assert placed(((0, bank),)) == (0, 4096, 4196, bank - 20)
    # The input is in the far half: the output goes to the beginning, the weights to the end.
    assert placed(((0, 60_000),), 60_000) == (0, 60_000, 60_000 - 50, 4096)
    assert placed(((0, 4096),)) is None
    assert placed(((0, 4096 + 100 + 50 + 19),)) is None
    assert placed(((0, 4096 + 100 + 50 + 20),)) == (0, 4096, 4196, 4246)
    # First fit: the weights go into the first hole, which the others are too large for.
    assert placed(((0, 99), (200, 5000), (8000, 8050))) == (200, 4296, 0, 8030)


def test_cells_of_compressed_maps() -> None:
    assert consists_of_cells(Format.FCAF_DEEP, (16, 8, 32))
    assert not consists_of_cells(Format.FCAF_DEEP, (16, 8, 16))
    assert consists_of_cells(Format.FCAF_WIDE, (8, 16, 16))
    assert cell_bytes((1, 9, 16, 33), Format.FCAF_DEEP) == 2 * 2 * 2 * 2112
    assert brick_bytes((1, 9, 7, 17)) == 16 * 8 * 32


EXTENTS = st.integers(1, 100)
STAGES = st.builds(
    stage,
    st.tuples(st.just(1), EXTENTS, EXTENTS, EXTENTS),
    EXTENTS,
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
)


@given(st.one_of(STAGES, STAGES.map(lambda row: depthwise(row.input))), st.data())
def test_what_is_cut_can_be_moved_and_fits_its_tile(stage: Stage, data: st.DataObject) -> None:
    _, height, width, channels = stage.output
    request = Request(
        data.draw(st.integers(1, height)),
        data.draw(st.integers(1, width)),
        data.draw(st.integers(1, channels)),
        data.draw(st.integers(1, 3)),
        data.draw(st.integers(3, 4)),
    )
    parts = cut(stage, request, SIXTEEN)
    if parts is None:
        return
    for piece in (parts.input, parts.output):
        _, rows, columns, deep = piece.stripe
        assert rows % 8 == 0
        assert columns % 8 == 0 or columns == 4
        assert deep % 16 == 0
        assert piece.bytes % SIXTEEN.srams == 0
    # The stripe that was asked for is in the one that is made, as far as there is so much.
    wanted = (request.height, request.width, request.channels)
    pairs = zip(wanted, stage.output[1:], parts.output.stripe[1:], strict=True)
    assert all(made >= min(asked, whole) for asked, whole, made in pairs)
    assert parts.output.bytes >= rows_bytes(parts.output.stripe, stage.output)
    assert 1 <= parts.weights.stripes <= request.weight_stripes


def rows_bytes(stripe: Shape, whole: Shape) -> int:
    """Return the bytes of a stripe as far as the map goes, which is the least that a tile holds."""
    found = 1
    for part, extent in zip(stripe[1:], whole[1:], strict=True):
        found *= min(part, extent)
    return found
