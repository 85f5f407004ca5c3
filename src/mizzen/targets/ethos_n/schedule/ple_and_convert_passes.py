"""Forming passes without the compute engines: a kernel of the PLE alone, or the DMA alone.

The programmable layer engine (PLE) alone makes a sum or a 3x3 mean; the DMA alone changes a map's
layout, or copies it.

Ref: Ethos-N driver stack 23.02, the Support Library's `PlePass` and `ConversionPass`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mizzen.targets.ethos_n.commands_values import Location, PleOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.lower.work_graph import (
    Copy,
    Layout,
    LonePle,
    Node,
    Relabel,
    Relayout,
    nearest,
)
from mizzen.targets.ethos_n.schedule.attempt import (
    BRICK_CHANNELS,
    BRICK_HEIGHT,
    BRICK_WIDTH,
    Attempt,
    ConvertPass,
    Holes,
    PlePass,
    PlePlan,
    Side,
    Tile,
    brick_bytes,
    divide_up,
    round_up,
    take,
    volume,
)
from mizzen.targets.ethos_n.schedule.stripes import side_across
from mizzen.targets.ethos_n.tensors import Shape

STRIPES = 2
"""Stripes in a tile, unless one is everything."""
NEEDS_PLANES = frozenset({PleOperation.AVGPOOL_3X3_1_1_UDMA})
"""Kernels that take whole planes; others take any stripe."""


def form_ple_pass(first: Node, attempt: Attempt) -> PlePass | None:
    """Form the pass that begins at a node, and commit it; None if there is none.

    A pass that cannot be formed leaves wishes at the nodes that stand in its way.
    """
    if not isinstance(first.work, LonePle):
        return None
    plan = _find_plan(first, first.work, attempt)
    if plan is None:
        kept = nearest(first, attempt.in_sram)
        if kept is not None:
            kept.wishes.dram = True
        return None
    if _ask_for_readable_inputs(first, plan, attempt):
        return None
    nodes, location = _output(first, plan, attempt)
    made = PlePass(nodes, plan)
    size = plan.output.bytes // attempt.capabilities.srams
    attempt.commit(made, location, plan.output.offset_bytes, size)
    return made


def _output(first: Node, plan: PlePlan, attempt: Attempt) -> tuple[tuple[Node, ...], Location]:
    """Return the nodes of the pass, with a change of layout if one can be had, and its location."""
    extents = zip(plan.output.stripe[1:], first.shape[1:], strict=True)
    whole = all(stripe >= extent for stripe, extent in extents)
    if whole and first.layout is Layout.NHWCB and not first.demands.dram:
        return (first,), Location.SRAM
    after = attempt.follower(first)
    if after is None or not isinstance(after.work, Relayout):
        return (first,), Location.DRAM
    # The firmware writes no NHWC of stripes that are not contiguous in it.
    contiguous = plan.output.stripe[3] >= first.shape[3] and plan.output.stripe[2] >= first.shape[2]
    if not contiguous and after.layout is not Layout.NHWCB:
        return (first,), Location.DRAM
    return (first, after), Location.DRAM


def _ask_for_readable_inputs(first: Node, plan: PlePlan, attempt: Attempt) -> bool:
    """Wish the inputs changed that the pass cannot read; say whether there are any."""
    found = False
    for source, tile in zip(first.inputs, plan.inputs, strict=True):
        if attempt.compressed(source):
            source.wishes.uncompressed = found = True
        if source.layout is Layout.NHWC and tile.stripe[3] < source.shape[3]:
            source.wishes.output_layout = Layout.NHWCB
            found = True
    return found


def _find_plan(node: Node, work: LonePle, attempt: Attempt) -> PlePlan | None:
    """Return the first plan that there is room for, whole tensors first."""
    shape = node.source.shape
    if any(source.shape != shape for source in node.inputs) or shape[3] > node.shape[3]:
        return None
    # The firmware takes all inputs from DRAM or all from SRAM.
    if len({attempt.in_sram(source) for source in node.inputs}) > 1:
        return None
    capabilities = attempt.capabilities
    kernel = take(attempt.sram.holes, capabilities.max_ple_bytes, Side.BEGIN)
    if kernel is None:
        return None
    offsets = tuple(
        attempt.of(source).sram_offset_bytes if attempt.in_sram(source) else None
        for source in node.inputs
    )
    for splits in _splits(node.shape, whole_planes=work.kernel in NEEDS_PLANES):
        stripes = _stripe(shape, splits), _stripe(node.shape, splits)
        found = _place(stripes, shape, node.shape, offsets, kernel, capabilities)
        if found is not None:
            return found
    return None


def _splits(shape: Shape, *, whole_planes: bool) -> Iterator[tuple[int, int, int]]:
    """Return in how many parts to divide height, width, channels, the fewest first."""
    bricks = (BRICK_HEIGHT, BRICK_WIDTH, BRICK_CHANNELS)
    most = [divide_up(extent, brick) for extent, brick in zip(shape[1:], bricks, strict=True)]
    if whole_planes:
        most[:2] = 1, 1
    ranges = [range(1, count + 1) for count in most]
    for deep, wide, high in product(ranges[2], ranges[1], ranges[0]):
        yield high, wide, deep


def _stripe(shape: Shape, splits: tuple[int, int, int]) -> Shape:
    high, wide, deep = splits
    return (
        1,
        round_up(shape[1] // high, BRICK_HEIGHT),
        round_up(shape[2] // wide, BRICK_WIDTH),
        round_up(shape[3] // deep, BRICK_CHANNELS),
    )


def _place(
    stripes: tuple[Shape, Shape],
    input_shape: Shape,
    output_shape: Shape,
    offsets: tuple[int | None, ...],
    kernel: tuple[Holes, int],
    capabilities: Capabilities,
) -> PlePlan | None:
    """Find places for the tiles of an input's stripes and of the output's."""
    in_stripe, out_stripe = stripes
    holes, ple_offset = kernel
    count = 1 if volume(out_stripe) >= volume(output_shape) else STRIPES
    output_bytes, input_bytes = count * volume(out_stripe), count * volume(in_stripe)
    output = take(holes, output_bytes // capabilities.srams, Side.END)
    if output is None:
        return None
    holes = output[0]
    inputs: list[Tile] = []
    for known in offsets:
        offset = known
        if offset is None:
            found = take(holes, input_bytes // capabilities.srams, Side.BEGIN)
            if found is None:
                return None
            holes, offset = found
        elif any(part < extent for part, extent in zip(in_stripe, input_shape, strict=True)):
            # What is in SRAM already is read as a whole.
            return None
        inputs.append(Tile(in_stripe, input_bytes, count, offset))
    return PlePlan(tuple(inputs), Tile(out_stripe, output_bytes, count, output[1]), ple_offset)


def form_convert_pass(first: Node, attempt: Attempt) -> ConvertPass | None:
    """Form the pass that begins at a node, and commit it; None if there is none."""
    if not first.inputs:
        return None
    location = attempt.location(first.source)
    nodes = _nodes_in_sram(first, attempt) if location is Location.SRAM else ()
    if location is Location.DRAM:
        nodes = _nodes_in_dram(first, attempt)
    if not nodes:
        return None
    capabilities, last = attempt.capabilities, nodes[-1]
    if location is Location.SRAM:
        # Within SRAM the whole map is moved at once.
        stripe = last.shape
        side = side_across(attempt.of(first.source).sram_offset_bytes, capabilities)
    else:
        stripe = _largest_stripe(last.shape, attempt.sram.holes, capabilities)
        side = Side.BEGIN
    size = brick_bytes(stripe) // capabilities.srams
    found = take(attempt.sram.holes, size, side)
    if found is None:
        kept = nearest(first, attempt.in_sram)
        if kept is not None:
            kept.wishes.dram = True
        return None
    made = ConvertPass(nodes, stripe, found[1])
    attempt.commit(made, location, found[1], size)
    return made


def _nodes_in_dram(first: Node, attempt: Attempt) -> tuple[Node, ...]:
    """Return the longest chain of changes of layout and copies."""
    nodes: list[Node] = []
    node: Node | None = first
    while node is not None and isinstance(node.work, Relayout | Copy):
        nodes.append(node)
        node = attempt.follower(node)
    return tuple(nodes)


def _nodes_in_sram(first: Node, attempt: Attempt) -> tuple[Node, ...]:
    """Return longest chain of changes of layout, and of new shapes in NHWC, that ends in bricks.

    In SRAM everything lies in bricks: a new shape in NHWC moves the elements.
    """
    nodes: list[Node] = []
    ended = 0
    node: Node | None = first
    while node is not None and not node.demands.dram and _moves_in_sram(node):
        nodes.append(node)
        if node.layout is Layout.NHWCB:
            ended = len(nodes)
        node = attempt.follower(node)
    return tuple(nodes[:ended])


def _moves_in_sram(node: Node) -> bool:
    if isinstance(node.work, Relayout):
        return True
    flat = node.layout is Layout.NHWC and node.source.layout is Layout.NHWC
    return isinstance(node.work, Relabel) and flat


def _largest_stripe(shape: Shape, holes: Holes, capabilities: Capabilities) -> Shape:
    """Return the first stripe that there is room for, or the last one tried if there is none.

    Channels are cut only where the width is 1: elsewhere the firmware cannot.
    """
    _, height, width, channels = shape
    most_deep = divide_up(channels, BRICK_CHANNELS) if width == 1 else 1
    deep_parts, wide_parts, high_parts = (
        range(1, most + 1)
        for most in (most_deep, divide_up(width, BRICK_WIDTH), divide_up(height, BRICK_HEIGHT))
    )
    stripe = shape
    for deep, wide, high in product(deep_parts, wide_parts, high_parts):
        stripe = (
            1,
            round_up(height // high, BRICK_HEIGHT),
            round_up(width // wide, BRICK_WIDTH),
            round_up(channels // deep, BRICK_CHANNELS),
        )
        if take(holes, brick_bytes(stripe) // capabilities.srams, Side.BEGIN) is not None:
            break
    return stripe
