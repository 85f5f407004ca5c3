"""Cutting the tensors of a pass into stripes that are as deep as the input, and placing them.

A strategy asks for a stripe of the output; here that is rounded to what the hardware and the
firmware can do, the stripes of the input and of the weights follow from it, and the tiles' sizes
from how many stripes are worked on at a time. What they depend on is here too: the blocks that all
parts of a pass can work with, the size of encoded weights.

Ref: Ethos-N driver stack 23.02, the Support Library's strategies 0 to 7, its block configuration
filters and weight size estimate; specification of the compute engine 6.8.6.3 as cited there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    MceOperation,
    PleOperation,
    Strategy,
    Upsample,
)
from mizzen.targets.ethos_n.config import PATCH_SHAPE, BlockConfig, Capabilities
from mizzen.targets.ethos_n.lower.work_graph import Ratio, ShapeRatio
from mizzen.targets.ethos_n.schedule.attempt import (
    BRICK_CHANNELS,
    BRICK_HEIGHT,
    BRICK_WIDTH,
    Holes,
    McePlan,
    Side,
    Tile,
    divide_up,
    round_up,
    take,
    volume,
)
from mizzen.targets.ethos_n.tensors import DataFormat, Shape

PAYLOAD_HEADER_BYTES = divide_up(17 + 1 + 3 + 3 + 1 + 1 + 5 + 5 + 3 + 32 * 9, 8)
"""Symbol count, compression parameters and a full palette of 32 entries of 9 bits."""
CHANNEL_HEADER_BYTES = 14
"""Length, bias, scale and shift, with the rest of what stands before a channel's weights."""
STREAM_MULTIPLE_BYTES = 16


def largest_weight_bytes(shape: Shape, format: DataFormat, capabilities: Capabilities) -> int:
    """Return the bytes of weights of `shape` if nothing of them can be compressed."""
    height, width, inputs, outputs = shape
    if format is DataFormat.HWIM:
        lanes, outputs = capabilities.srams, outputs * inputs
        weights = height * width * (1 + capabilities.srams // 8)
    else:
        lanes = capabilities.ogs
        weights = height * width * round_up(inputs, capabilities.igs)
    channel = divide_up(9 * weights, 8) + PAYLOAD_HEADER_BYTES + CHANNEL_HEADER_BYTES
    return round_up(channel * divide_up(outputs, lanes), STREAM_MULTIPLE_BYTES) * lanes


_8X8, _16X8, _32X8, _16X16 = (
    BlockConfig(8, 8),
    BlockConfig(16, 8),
    BlockConfig(32, 8),
    BlockConfig(16, 16),
)
KERNEL_BLOCKS: dict[PleOperation, frozenset[BlockConfig]] = {
    PleOperation.DOWNSAMPLE_2X2: frozenset({_16X8, _32X8, _16X16, _8X8}),
    PleOperation.INTERLEAVE_2X2_2_2: frozenset({_16X16}),
    PleOperation.MAXPOOL_2X2_2_2: frozenset({_16X16, _32X8, _8X8, _16X8}),
    PleOperation.MEAN_XY_7X7: frozenset({_8X8}),
    PleOperation.MEAN_XY_8X8: frozenset({_8X8}),
    PleOperation.MAXPOOL_3X3_2_2_EVEN: frozenset({_32X8, _8X8}),
    PleOperation.MAXPOOL_3X3_2_2_ODD: frozenset({_32X8, _8X8}),
}
"""The blocks that a kernel of the programmable layer engine is made for; others take every one."""


def usable_blocks(
    allowed: Iterable[BlockConfig],
    operation: MceOperation,
    kernel: tuple[int, int],
    algorithm: Algorithm,
    ple: PleOperation,
    capabilities: Capabilities,
) -> tuple[BlockConfig, ...]:
    """Return the blocks that all parts of a pass can work with, in the order of `allowed`.

    kernel  height and width of the convolution
    """
    usable = [block for block in allowed if block in KERNEL_BLOCKS.get(ple, {block})]
    if operation is MceOperation.FULLY_CONNECTED:
        usable = [block for block in usable if block == _8X8]
    if algorithm is Algorithm.WINOGRAD:
        # A block takes four times the accumulators, or twice with a kernel of one row or column.
        share = 4 if min(kernel) > 1 else 2
        most = capabilities.accumulators_per_og // share
        usable = [block for block in usable if block.width * block.height <= most]
    return tuple(usable)


def best_first(
    blocks: Iterable[BlockConfig], output: Shape, kernel: tuple[int, int]
) -> tuple[BlockConfig, ...]:
    """Sort blocks, those first that leave the least of a block unused.

    The smallest block that holds the whole plane is best; among those that do not, that with the
    largest rests at the far edges, then the longest across the shorter side of the kernel.
    """
    _, height, width, _ = output

    def badness(block: BlockConfig) -> tuple[int, ...]:
        if height <= block.height and width <= block.width:
            return 0, block.width * block.height
        rest = height % block.height + width % block.width
        if kernel[1] > kernel[0]:
            return 1, -rest, -block.width, -block.height
        return 1, -rest, -block.height, -block.width

    return tuple(sorted(blocks, key=badness))


def widest_first(blocks: Iterable[BlockConfig]) -> tuple[BlockConfig, ...]:
    """Sort blocks by width, then by height, the largest first."""
    return tuple(sorted(blocks, key=lambda block: (-block.width, -block.height)))


PATCH_WIDTH = PATCH_SHAPE[2]
"""A stripe may be one patch wide, half of what the DMA moves."""
WEIGHT_STRIPES = 2
"""Stripes in the weights' tile, unless a strategy says otherwise: one in use, one being loaded."""
INPUT_STRIPES = 3
"""Most stripes in the input's tile, unless a strategy says otherwise."""
OUTPUT_STRIPES = 2


@dataclass(frozen=True, slots=True)
class Stage:
    """What a pass of the compute engines works on, as far as its stripes depend on it.

    kernel              weights' shape, planes as large as the engines take them
    mce_ratio, ple_ratio  how the output of the compute engines relates to the input, and the
                        pass's output to that
    input_offset_bytes  where in each bank the input already is; None where it is in DRAM
    deepest_stripe      most channels of an output stripe if planes are cut along H
    """

    operation: MceOperation
    input: Shape
    mce_output: Shape
    output: Shape
    kernel: Shape
    weight_format: DataFormat
    mce_ratio: ShapeRatio
    ple_ratio: ShapeRatio
    upsample: Upsample
    pad_top: int
    pad_left: int
    input_offset_bytes: int | None
    deepest_stripe: int | None

    @property
    def ratio(self) -> ShapeRatio:
        """How the pass's output relates to its input."""
        return self.mce_ratio * self.ple_ratio


@dataclass(frozen=True, slots=True)
class Piece:
    """A tile that has no place yet: its stripes' shape, its bytes over all banks, its stripes."""

    stripe: Shape
    bytes: int
    stripes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The tiles of a pass."""

    input: Piece
    weights: Piece
    output: Piece


@dataclass(frozen=True, slots=True)
class Request:
    """What a strategy asks for: an output stripe, and most stripes in two tiles."""

    height: int
    width: int
    channels: int
    weight_stripes: int = WEIGHT_STRIPES
    input_stripes: int = INPUT_STRIPES


@lru_cache(maxsize=4096)
def cut(stage: Stage, request: Request, capabilities: Capabilities) -> Cut | None:
    """Cut a stage's tensors as a strategy asks, or None if that cannot be worked on."""
    height, width, channels = output_stripe_extents(stage, request, capabilities)
    in_height = input_extent(stage.output[1], stage.input[1], height, stage.ratio.height)
    in_width = input_extent(stage.output[2], stage.input[2], width, stage.ratio.width)
    boundary = boundary_height(stage, in_height, in_width, capabilities)
    if not reaches_neighbours(stage, in_height, in_width, boundary):
        return None
    if stage.deepest_stripe is not None and in_height < stage.input[1]:
        channels = min(channels, stage.deepest_stripe)
    output = (1, height, width, channels)
    weights = _weight_stripe(stage, channels, capabilities)
    depth = round_up(stage.input[3], capabilities.srams)
    from_dram = stage.input_offset_bytes is None
    if stage.weight_format is DataFormat.HWIM and from_dram and in_width >= stage.input[2]:
        depth = weights[2]
    in_piece = _input_piece(stage, (1, in_height, in_width, depth), boundary, request, capabilities)
    if in_piece is None or not _firmware_streams(stage, in_piece.stripe, output):
        return None
    weight_piece = _weight_piece(stage, weights, channels, request, capabilities)
    return Cut(in_piece, weight_piece, _output_piece(stage, output, capabilities))


def output_stripe_extents(
    stage: Stage, request: Request, capabilities: Capabilities
) -> tuple[int, int, int]:
    """Round the height, the width and the channels of a requested output stripe."""
    ratio = stage.ratio
    width = PATCH_WIDTH
    if request.width != PATCH_WIDTH:
        width = _plane_extent(request.width, stage.output[2], ratio.width, BRICK_WIDTH)
    height = _plane_extent(request.height, stage.output[1], ratio.height, BRICK_HEIGHT)
    return height, width, stripe_channels(stage.output[3], request.channels, ratio, capabilities)


def _plane_extent(requested: int, whole: int, ratio: Ratio, brick: int) -> int:
    multiple = max(brick, ratio.times(brick))
    return min(round_up(requested, multiple), round_up(whole, brick))


def stripe_channels(
    whole: int, requested: int, ratio: ShapeRatio, capabilities: Capabilities
) -> int:
    """Round channels of an output stripe to banks, and to brick groups where there are several.

    The DMA cannot move a stripe that begins inside a brick group and goes beyond it.
    """
    groups = ratio.channels.times(BRICK_CHANNELS)
    if requested < whole and requested > groups:
        return round_up(requested, groups)
    return round_up(requested, ratio.channels.times(capabilities.srams))


def input_extent(output: int, whole: int, output_stripe: int, ratio: Ratio) -> int:
    """Return the extent of the input stripe that an output stripe is made of."""
    needed = whole if output_stripe >= output else ratio.under(output_stripe)
    return round_up(min(needed, whole), BRICK_HEIGHT)


def boundary_height(stage: Stage, height: int, width: int, capabilities: Capabilities) -> int:
    """Return the rows of the slots that hold neighbours' rows, where planes are cut both ways."""
    cut_both_ways = stage.input[1] > height and stage.input[2] > width
    return capabilities.boundary_stripe_height if cut_both_ways and stage.kernel[0] > 1 else 0


def reaches_neighbours(stage: Stage, height: int, width: int, boundary: int) -> bool:
    """Say whether a stripe and its neighbours on both sides hold what the kernel covers."""
    _, whole_height, whole_width, _ = stage.input
    lines = boundary or height
    if whole_height > height and 2 * lines < stage.kernel[0] - 1:
        return False
    return not (whole_width > width and 2 * width < stage.kernel[1] - 1)


def submaps(stage: Stage, capabilities: Capabilities) -> int:
    """Return how many maps of the weights' channels the input has, interleaved."""
    banks = capabilities.srams
    return divide_up(round_up(stage.input[3], banks), round_up(stage.kernel[2], banks))


def _weight_stripe(stage: Stage, output_channels: int, capabilities: Capabilities) -> Shape:
    height, width, _, multiplier = stage.kernel
    made = stage.ratio.channels.under(output_channels)
    if stage.weight_format is DataFormat.HWIM:
        return height, width, made * submaps(stage, capabilities), multiplier
    return height, width, stage.input[3], made


def _input_piece(
    stage: Stage, stripe: Shape, boundary: int, request: Request, capabilities: Capabilities
) -> Piece | None:
    """Return the input's tile: a stripe, its neighbours as far as the kernel reaches, the next."""
    _, height, width, _ = stage.input
    across = stage.kernel[1] if width > stripe[2] else stage.kernel[0]
    most = min(min(across, 3) + 1, request.input_stripes)
    total = divide_up(width, stripe[2]) * divide_up(height, stripe[1])
    # What is in SRAM already is there as a whole.
    stripes = total if stage.input_offset_bytes is not None else min(most, total)
    if stripes > capabilities.central_slots:
        return None
    largest = _largest_input_bytes(stage.input, stripe, capabilities)
    slots = capabilities.boundary_slots * boundary * stripe[2] * stripe[3]
    return Piece(stripe, min(volume(stripe) * stripes, largest) + slots, stripes)


def _largest_input_bytes(shape: Shape, stripe: Shape, capabilities: Capabilities) -> int:
    """Return the size of a tile that holds everything, if rests of stripes take no more than is."""
    _, height, width, channels = shape
    depth = round_up(channels, capabilities.srams)
    bricks_high, bricks_wide = round_up(height, BRICK_HEIGHT), round_up(width, BRICK_WIDTH)
    if height > stripe[1] and width > stripe[2]:
        stripes_high, stripes_wide = round_up(height, stripe[1]), round_up(width, stripe[2])
        planes = max(stripes_high * bricks_wide, bricks_high * stripes_wide)
    else:
        planes = bricks_high * bricks_wide
    return planes * depth


def _firmware_streams(stage: Stage, input_stripe: Shape, output_stripe: Shape) -> bool:
    """Say whether the firmware can pair the stripes of the input with those of the output."""
    in_x, in_y = (divide_up(stage.input[axis], input_stripe[axis]) for axis in (2, 1))
    out_x, out_y = (divide_up(stage.output[axis], output_stripe[axis]) for axis in (2, 1))
    return (in_x == out_x or out_y <= 1) and in_y >= out_y


def _weight_piece(
    stage: Stage, stripe: Shape, output_channels: int, request: Request, capabilities: Capabilities
) -> Piece:
    stripes = min(request.weight_stripes, divide_up(stage.output[3], output_channels))
    each = largest_weight_bytes(stripe, stage.weight_format, capabilities) if volume(stripe) else 0
    return Piece(stripe, each * stripes, stripes)


def _output_piece(stage: Stage, stripe: Shape, capabilities: Capabilities) -> Piece:
    piece = output_piece(stage, stripe, capabilities.srams)
    # The DMA writes a stripe of one patch's width as whole brick groups.
    smallest = round_up(stripe[1], BRICK_HEIGHT) * round_up(stripe[2], BRICK_WIDTH) * stripe[3]
    return replace(piece, bytes=max(piece.bytes, smallest))


def output_piece(stage: Stage, stripe: Shape, together: int) -> Piece:
    """Return the output's tile, two stripes or all of it; channels in multiples of `together`."""
    _, height, width, channels = stage.output
    total = 1
    for axis in (1, 2, 3):
        total *= divide_up(stage.output[axis], stripe[axis])
    stripes = min(OUTPUT_STRIPES, total)
    planes = round_up(height, BRICK_HEIGHT) * round_up(width, BRICK_WIDTH)
    return Piece(
        stripe, min(volume(stripe) * stripes, planes * round_up(channels, together)), stripes
    )


def side_across(offset: int, capabilities: Capabilities) -> Side:
    """Return the side of the SRAM away from a tile, so that loading and storing can overlap."""
    half = capabilities.sram_bytes // capabilities.srams // 2
    return Side.END if offset <= half else Side.BEGIN


def place(
    parts: Cut,
    strategy: Strategy,
    block: BlockConfig,
    input_offset: int | None,
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    """Find places for the kernel and the tiles of a pass; None if one has none.

    input_offset  where the input is if it is in SRAM already
    """
    banks = capabilities.srams
    kernel = take(holes, capabilities.max_ple_bytes, Side.BEGIN)
    if kernel is None:
        return None
    holes, ple_offset = kernel
    if input_offset is None:
        room = take(holes, parts.input.bytes // banks, Side.BEGIN)
        if room is None:
            return None
        holes, input_offset = room
    side = side_across(input_offset, capabilities)
    weights = take(holes, parts.weights.bytes // banks, side.other)
    if weights is None:
        return None
    output = take(weights[0], parts.output.bytes // banks, side)
    if output is None:
        return None
    return McePlan(
        strategy,
        block,
        _tile(parts.input, input_offset),
        _tile(parts.weights, weights[1]),
        _tile(parts.output, output[1]),
        ple_offset,
    )


def _tile(piece: Piece, offset: int) -> Tile:
    return Tile(piece.stripe, piece.bytes, piece.stripes, offset)
