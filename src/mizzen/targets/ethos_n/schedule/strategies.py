"""The strategies that a pass of the compute engines may follow, and the choice among them.

A strategy is a sequence of output stripes to ask for, the best first; the first that can be worked
on and has room in SRAM is taken. Strategy 6 compares all of its own instead, by input traffic.

| strategy | cuts |
|---|---|
| 3 | nothing |
| 0 | the planes along H |
| 1 | the weights, by output channels |
| 6 | the planes along H and W, and the output channels |
| 4 | the planes along W, and the output channels |
| 7 | the planes along H and the channels of a depthwise convolution |

Ref: Ethos-N driver stack 23.02, the Support Library's strategies and its estimate of input traffic.

Strategy X streams input channels, or a matrix product's weights. The compute engines accumulate
over the parts of the input channels; a stripe of their output is a single block, and the pass's
output stripe may be made of several. Convolutions come to it when no other strategy has room;
matrix products always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    CELLS,
    Holes,
    McePlan,
    consists_of_cells,
    divide_up,
    round_up,
    volume,
)
from mizzen.targets.ethos_n.schedule.stripes import (
    INPUT_STRIPES,
    Cut,
    Piece,
    Request,
    Stage,
    best_first,
    boundary_height,
    cut,
    input_extent,
    largest_weight_bytes,
    output_piece,
    place,
    reaches_neighbours,
    stripe_channels,
    submaps,
    widest_first,
)
from mizzen.targets.ethos_n.tensors import DataFormat, Shape


def input_traffic_bytes(
    shape: Shape,
    stripe: Shape,
    weights: Shape,
    weight_format: DataFormat,
    output_stripes_deep: int,
    capabilities: Capabilities,
) -> int:
    """Return the bytes read, neighbours' rows and reloads for further output channels included."""
    streams_h, streams_w, streams_c = (stripe[axis] < shape[axis] for axis in (1, 2, 3))
    if streams_c:
        times = divide_up(weights[3], capabilities.ogs)
    elif (streams_h or streams_w) and weight_format is not DataFormat.HWIM:
        times = output_stripes_deep
    else:
        times = 1
    border_width = stripe[2] if weights[1] > 1 and streams_c else 0
    bordered = weights[0] > 1 and (streams_c or (streams_h and streams_w))
    border_height = capabilities.boundary_stripe_height if bordered else 0
    height = shape[1] + 2 * border_height * ((shape[1] - 1) // stripe[1])
    width = shape[2] + 2 * border_width * ((shape[2] - 1) // stripe[2])
    return times * shape[0] * height * width * shape[3]


Asked = tuple[BlockConfig, Request]
Asks = Callable[[Stage, tuple[BlockConfig, ...], Capabilities], Iterable[Asked]]


def choose_strategy(
    stage: Stage,
    strategies: Iterable[Strategy],
    blocks: tuple[BlockConfig, ...],
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    """Return the plan of the first strategy, in the order of `PREFERENCE`, that has one."""
    allowed = set(strategies)
    ordered = best_first(blocks, stage.output, stage.kernel[:2])
    for strategy, asks in PREFERENCE.items():
        if strategy not in allowed or not ordered:
            continue
        asked = asks(stage, ordered, capabilities)
        pick = _cheapest if strategy is Strategy.STRATEGY_6 else _first
        plan = pick(strategy, asked, stage, holes, capabilities)
        if plan is not None:
            return plan
    return None


def _first(
    strategy: Strategy,
    asked: Iterable[Asked],
    stage: Stage,
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    """Return the first plan that there is."""
    for block, request in asked:
        plan = _plan(strategy, block, request, stage, holes, capabilities)
        if plan is not None:
            return plan
    return None


def _cheapest(
    strategy: Strategy,
    asked: Iterable[Asked],
    stage: Stage,
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    """Return the plan with the least input traffic, counting half where the output compresses."""
    best: McePlan | None = None
    least = 0
    tried: set[Request] = set()
    for block, request in asked:
        # Blocks do not matter for the fit: the first that asks for a stripe is the best of them.
        if request in tried:
            continue
        tried.add(request)
        plan = _plan(strategy, block, request, stage, holes, capabilities)
        if plan is None:
            continue
        cost = _cost(plan, request, stage, capabilities)
        if best is None or cost < least:
            best, least = plan, cost
    return best


def _plan(
    strategy: Strategy,
    block: BlockConfig,
    request: Request,
    stage: Stage,
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    parts = cut(stage, request, capabilities)
    if parts is None:
        return None
    return place(parts, strategy, block, stage.input_offset_bytes, holes, capabilities)


def _cost(plan: McePlan, request: Request, stage: Stage, capabilities: Capabilities) -> int:
    deep = divide_up(stage.output[3], plan.output.stripe[3])
    traffic = input_traffic_bytes(
        stage.input, plan.input.stripe, stage.kernel, stage.weight_format, deep, capabilities
    )
    extents = (request.height, request.width, request.channels)
    compresses = any(consists_of_cells(format, extents) for format in CELLS)
    return traffic // 2 if compresses else traffic


def _steps(whole: int, block: int) -> range:
    """Return the extents of a stripe of whole blocks, from about a half of `whole` down to one."""
    return range(round_up(whole // 2, block), block - 1, -block)


def _whole(
    stage: Stage, blocks: tuple[BlockConfig, ...], capabilities: Capabilities
) -> Iterator[Asked]:
    """Strategy 3: everything at once."""
    yield blocks[0], Request(*stage.output[1:])


def _rows(
    stage: Stage, blocks: tuple[BlockConfig, ...], capabilities: Capabilities
) -> Iterator[Asked]:
    """Strategy 0: rows, with a fourth stripe of the input if there is room."""
    for block in blocks:
        heights = _steps(stage.mce_output[1], block.height)
        if heights and heights[0] >= stage.mce_output[1]:
            continue
        for height, stripes in product(heights, (INPUT_STRIPES + 1, INPUT_STRIPES)):
            asked = stage.ple_ratio.height.times(height)
            yield block, Request(asked, *stage.output[2:], input_stripes=stripes)


def _depth_parts(channels: int) -> list[int]:
    """Return the channels of a part when they are divided in 2, in 3, ...; each once."""
    return list(dict.fromkeys(channels // parts for parts in range(2, channels)))


def _outputs(
    stage: Stage, blocks: tuple[BlockConfig, ...], capabilities: Capabilities
) -> Iterator[Asked]:
    """Strategy 1: output channels; a single stripe of weights in SRAM only as a last resort."""
    _, height, width, channels = stage.output
    parts = _depth_parts(channels)
    for part, stripes in [*product(parts, (3, 2)), *product(parts, (1,))]:
        yield blocks[0], Request(height, width, part, weight_stripes=stripes)


def _columns(
    stage: Stage, blocks: tuple[BlockConfig, ...], capabilities: Capabilities
) -> Iterator[Asked]:
    """Strategy 4: narrow columns and as few output channels as the engines make at once."""
    ratio = stage.ratio
    mce_width = stage.mce_ratio.width.times(BRICK_WIDTH)
    width = stage.ple_ratio.width.times(mce_width)
    deep = round_up(min(stage.output[3], capabilities.ogs), capabilities.srams)
    fitting = sorted(blocks, key=lambda block: block.width != mce_width)
    for stripes in (2, 1):
        request = Request(stage.output[1], width, ratio.channels.times(deep), stripes)
        yield fitting[0], request


def _tiles(
    stage: Stage, blocks: tuple[BlockConfig, ...], capabilities: Capabilities
) -> Iterator[Asked]:
    """Strategy 6: rows, columns and output channels."""
    if stage.input_offset_bytes is not None:
        return
    _, made_height, made_width, _ = stage.mce_output
    planes: list[tuple[BlockConfig, int, int]] = []
    for block in blocks:
        heights, widths = _steps(made_height, block.height), _steps(made_width, block.width)
        if not heights or not widths or heights[0] >= made_height or widths[0] > made_width:
            continue
        for width, height in product(widths, heights):
            asked = stage.ple_ratio.height.times(height), stage.ple_ratio.width.times(width)
            planes.append((block, *asked))
    channels = stage.output[3]
    for part in dict.fromkeys(channels // parts for parts in range(1, channels)):
        for block, height, width in planes:
            yield block, Request(height, width, part)


def _deep_rows(
    stage: Stage, blocks: tuple[BlockConfig, ...], capabilities: Capabilities
) -> Iterator[Asked]:
    """Strategy 7: rows and channels, of a depthwise convolution."""
    if stage.weight_format is not DataFormat.HWIM or stage.input_offset_bytes is not None:
        return
    for block in blocks:
        heights = [
            stage.ple_ratio.height.times(height)
            for height in _steps(stage.mce_output[1], block.height)
        ]
        parts = _depth_parts(stage.output[3])
        several, single = product(heights, parts, (3, 2)), product(heights, parts, (1,))
        for height, part, stripes in [*several, *single]:
            yield block, Request(height, stage.output[2], part, stripes)


PREFERENCE: dict[Strategy, Asks] = {
    Strategy.STRATEGY_3: _whole,
    Strategy.STRATEGY_0: _rows,
    Strategy.STRATEGY_1: _outputs,
    Strategy.STRATEGY_6: _tiles,
    Strategy.STRATEGY_4: _columns,
    Strategy.STRATEGY_7: _deep_rows,
}
"""What each strategy asks for, the best strategy first."""


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
            plan = place(parts, Strategy.STRATEGY_X, ask.block, None, holes, capabilities)
            if plan is not None:
                return plan
    return None


def _fits(block: BlockConfig, stage: Stage, capabilities: Capabilities) -> bool:
    if block.width * block.height > capabilities.accumulators_per_og:
        return False
    return stage.upsample is Upsample.OFF or block == UPSAMPLING_BLOCK


def _asks(stage: Stage, blocks: list[BlockConfig]) -> Iterator[_Ask]:
    """Return the requests, the best first."""
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
    """Count the neighbours, before and after, that a stripe along one axis needs."""
    if whole <= stripe:
        return 0
    return (pad > 0) + (made + kernel - pad - 1 > stripe)


def _input_piece(stage: Stage, stripe: Shape, made: Shape, buffering: Buffering) -> Piece:
    _, height, width, channels = stage.input
    lines = _neighbours(stage.pad_top, height, stripe[1], made[1], stage.kernel[0])
    slot = volume(stripe) + (2 * BRICK_HEIGHT * stripe[2] * stripe[3] if lines else 0)
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
