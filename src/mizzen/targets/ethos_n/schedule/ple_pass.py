"""Forming a pass of the programmable layer engine alone: a sum, or a 3x3 mean.

Ref: Ethos-N driver stack 23.02, the Support Library's `PlePass`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mizzen.targets.ethos_n.commands_values import Location, PleOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.lower.graph import Layout, Node, nearest
from mizzen.targets.ethos_n.lower.work import LonePle, Relayout
from mizzen.targets.ethos_n.schedule.attempt import Attempt, PlePass
from mizzen.targets.ethos_n.schedule.plan import (
    BRICK_CHANNELS,
    BRICK_HEIGHT,
    BRICK_WIDTH,
    PlePlan,
    Tile,
    divide_up,
    round_up,
    volume,
)
from mizzen.targets.ethos_n.schedule.sram import Holes, Side, take
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
