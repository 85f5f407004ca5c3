"""Strategy X: input channels are streamed, or a matrix product's weights.

The compute engines accumulate over the parts of the input channels; a stripe of their output is a
single block, and the pass's output stripe may be made of several. Convolutions come here when no
other strategy has room; matrix products always.

Ref: Ethos-N driver stack 23.02, the Support Library's strategy X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from mizzen.targets.ethos_n.commands_values import MceOperation, Strategy, Upsample
from mizzen.targets.ethos_n.config import BlockConfig, Capabilities
from mizzen.targets.ethos_n.lower.lowering import FC_INPUTS_MULTIPLE
from mizzen.targets.ethos_n.schedule.attempt import (
    BRICK_CHANNELS,
    BRICK_HEIGHT,
    BRICK_WIDTH,
    Holes,
    McePlan,
    divide_up,
    round_up,
    volume,
)
from mizzen.targets.ethos_n.schedule.stripes import (
    Cut,
    Piece,
    Stage,
    boundary_height,
    input_extent,
    largest_weight_bytes,
    output_piece,
    place,
    reaches_neighbours,
    stripe_channels,
    submaps,
    widest_first,
)
from mizzen.targets.ethos_n.tensors import Shape

UPSAMPLING_BLOCK = BlockConfig(16, 16)
"""The only block whose half, which the input is read in, the DMA can move."""
FCAF_WIDE_DEPTH, FCAF_DEEP_DEPTH = 16, 32
"""Channels of the cells of the two compressed formats."""


class Buffering(Enum):
    """Which parts of the input have a place in the tile."""

    EVERYTHING = "everything"
    """All parts, so that none is read twice, if planes are whole; else as `DOUBLE`."""
    DOUBLE = "double"
    SINGLE = "single"


class Reloading(Enum):
    """How many parts of the weights have a place in the tile."""

    NEVER = "never"
    DOUBLE = "double"
    SINGLE = "single"


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is asked for: a block, parts of the input channels, how tiles are filled.

    compressible  whether the output stripe must be such that it can be compressed
    """

    block: BlockConfig
    input_channels: int
    compressible: bool = False
    buffering: Buffering = Buffering.DOUBLE
    reloading: Reloading = Reloading.NEVER


def stream_channels(
    stage: Stage, blocks: tuple[BlockConfig, ...], holes: Holes, capabilities: Capabilities
) -> McePlan | None:
    """Return the first plan of strategy X that there is room for, or None."""
    if stage.input_offset_bytes is not None:
        return None
    usable = [block for block in widest_first(blocks) if _fits(block, stage, capabilities)]
    for ask in _asks(stage, usable):
        parts = _cut(stage, ask, capabilities)
        if parts is not None:
            found = place(parts, Strategy.STRATEGY_X, ask.block, None, holes, capabilities)
            if found is not None:
                return found
    return None


def _fits(block: BlockConfig, stage: Stage, capabilities: Capabilities) -> bool:
    if block.width * block.height > capabilities.accumulators_per_og:
        return False
    return stage.upsample is Upsample.OFF or block == UPSAMPLING_BLOCK


def _asks(stage: Stage, blocks: list[BlockConfig]) -> Iterator[_Ask]:
    """Return what to ask for, the best first."""
    channels = stage.input[3]
    product_of_matrices = stage.operation is MceOperation.FULLY_CONNECTED
    if product_of_matrices:
        for buffering, block in product((Buffering.DOUBLE, Buffering.SINGLE), blocks):
            yield _Ask(block, channels, buffering=buffering)
    parts = dict.fromkeys(channels // splits for splits in range(2, channels))
    compressible = (False,) if product_of_matrices else (True, False)
    basic = [_Ask(block, part, flag) for flag, block, part in product(compressible, blocks, parts)]
    for reloading, buffering, ask in product(Reloading, Buffering, basic):
        yield replace(ask, buffering=buffering, reloading=reloading)


def _cut(stage: Stage, ask: _Ask, capabilities: Capabilities) -> Cut | None:
    height, width, channels = _output_extents(stage, ask.block, capabilities)
    in_height = input_extent(stage.output[1], stage.input[1], height, stage.ratio.height)
    in_width = input_extent(stage.output[2], stage.input[2], width, stage.ratio.width)
    boundary = boundary_height(stage, in_height, in_width, capabilities)
    if not reaches_neighbours(stage, in_height, in_width, boundary):
        return None
    if stage.deepest_stripe is not None and in_height < stage.input[1]:
        channels = min(channels, stage.deepest_stripe)
    depth = _input_channels(stage, ask.input_channels, capabilities)
    if depth >= stage.input[3] and ask.input_channels < stage.input[3]:
        return None
    ple = stage.ple_ratio
    made = (1, ple.height.under(height), ple.width.under(width), ple.channels.under(channels))
    output = (1, height, width, channels)
    if ask.compressible:
        output = _compressible(stage, output)
    if output[1] % BRICK_HEIGHT or output[2] % BRICK_WIDTH:
        return None
    stripe = (1, in_height, in_width, depth)
    return Cut(
        _input_piece(stage, stripe, made, ask.buffering),
        _weight_piece(stage, stripe, made, ask.reloading, capabilities),
        output_piece(stage, output, capabilities.ogs),
    )


def _output_extents(
    stage: Stage, block: BlockConfig, capabilities: Capabilities
) -> tuple[int, int, int]:
    """Return the extents of the output of one block in as many channels as are made at once."""
    ratio, ple = stage.ratio, stage.ple_ratio
    height = min(
        round_up(ple.height.times(block.height), ratio.height.times(BRICK_HEIGHT)),
        round_up(stage.output[1], BRICK_HEIGHT),
    )
    width = min(
        round_up(ple.width.times(block.width), ratio.width.times(BRICK_WIDTH)),
        round_up(stage.output[2], BRICK_WIDTH),
    )
    channels = ple.channels.times(capabilities.ogs)
    return height, width, stripe_channels(stage.output[3], channels, ratio, capabilities)


def _input_channels(stage: Stage, requested: int, capabilities: Capabilities) -> int:
    """Round channels of an input stripe; all submaps of a channel go together."""
    maps = submaps(stage, capabilities)
    groups = BRICK_CHANNELS * maps
    if requested < stage.input[3] and requested > groups:
        return round_up(requested, groups)
    return round_up(requested, capabilities.srams * maps)


def _compressible(stage: Stage, output: Shape) -> Shape:
    """Return a stripe of whole planes if blocks are not deep enough for a compressed format."""
    _, height, width, _ = stage.output
    small = height <= BRICK_HEIGHT and width <= BRICK_WIDTH
    depth = FCAF_DEEP_DEPTH if small else FCAF_WIDE_DEPTH
    if depth <= output[3]:
        return output
    return 1, round_up(height, BRICK_HEIGHT), round_up(width, BRICK_WIDTH), depth


def _neighbours(pad: int, whole: int, stripe: int, made: int, kernel: int) -> int:
    """Count the neighbours, before and behind, that a stripe along one axis needs."""
    if whole <= stripe:
        return 0
    return (pad > 0) + (made + kernel - pad - 1 > stripe)


def _input_piece(stage: Stage, stripe: Shape, made: Shape, buffering: Buffering) -> Piece:
    _, height, width, channels = stage.input
    rows = _neighbours(stage.pad_top, height, stripe[1], made[1], stage.kernel[0])
    slot = volume(stripe) + (2 * BRICK_HEIGHT * stripe[2] * stripe[3] if rows else 0)
    wide, high, deep = (
        divide_up(width, stripe[2]),
        divide_up(height, stripe[1]),
        divide_up(channels, stripe[3]),
    )
    columns = _neighbours(stage.pad_left, width, stripe[2], made[2], stage.kernel[1])
    stripes = min(1 + columns, wide)
    if buffering is not Buffering.SINGLE and channels > stripe[3]:
        everything = buffering is Buffering.EVERYTHING and high == 1 and wide == 1
        stripes *= deep if everything else 2
    return Piece(stripe, slot * stripes, stripes)


def _weight_piece(
    stage: Stage, stripe: Shape, made: Shape, reloading: Reloading, capabilities: Capabilities
) -> Piece:
    inputs, stripes = stripe[3], 2
    if stage.operation is MceOperation.FULLY_CONNECTED:
        inputs = round_up(volume(stripe), FC_INPUTS_MULTIPLE)
    elif reloading is Reloading.NEVER:
        stripes = divide_up(stage.input[3], stripe[3])
    elif reloading is Reloading.SINGLE:
        stripes = 1
    weights = (*stage.kernel[:2], inputs, made[3])
    each = largest_weight_bytes(weights, stage.weight_format, capabilities)
    return Piece(weights, each * stripes, stripes)
