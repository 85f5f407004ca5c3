"""Dividing the work graph into passes, with repairs until it can be.

Here are the passes without the compute engines, too: the programmable layer engine (PLE) alone
makes a sum or a 3x3 mean; the DMA alone changes a map's layout, or copies it. What is changed of a
graph that could not be divided is of two severities; grave changes, most of which add a stage, are
made only where no light one is possible.

Ref: Ethos-N driver stack 23.02, how the Support Library prepares its graph, its `PlePass` and
`ConversionPass`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import product

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Location, PleOperation
from mizzen.targets.ethos_n.config import Capabilities, CompilationOptions
from mizzen.targets.ethos_n.lower.lowering import identity_after
from mizzen.targets.ethos_n.lower.work_graph import (
    Clamp,
    Concat,
    Copy,
    Extract,
    FusedPle,
    Graph,
    Layout,
    LonePle,
    Mce,
    Node,
    Relabel,
    Relayout,
    Requantization,
    Sink,
    move_before,
    nearest,
    rewrite,
)
from mizzen.targets.ethos_n.schedule.attempt import (
    BRICK_CHANNELS,
    BRICK_HEIGHT,
    BRICK_WIDTH,
    Attempt,
    ConvertPass,
    Holes,
    McePass,
    PlePass,
    PlePlan,
    Side,
    Sram,
    Tile,
    brick_bytes,
    divide_up,
    round_up,
    take,
    volume,
)
from mizzen.targets.ethos_n.schedule.mce_pass import KEEPS_NUMBERS, form_mce_pass
from mizzen.targets.ethos_n.schedule.stripes import side_across
from mizzen.targets.ethos_n.tensors import Shape

STRIPES = 2
"""Stripes in a tile, unless one is everything."""
NEEDS_PLANES = frozenset({PleOperation.AVGPOOL_3X3_1_1_UDMA})
"""Kernels that take whole planes; others take any stripe."""


def form_ple_pass(first: Node, attempt: Attempt) -> PlePass | None:
    """Form the pass that begins at a node, and commit it; None if there is not one.

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
    asked = False
    for source, tile in zip(first.inputs, plan.inputs, strict=True):
        if attempt.compressed(source):
            source.wishes.uncompressed = asked = True
        if source.layout is Layout.NHWC and tile.stripe[3] < source.shape[3]:
            source.wishes.output_layout = Layout.NHWCB
            asked = True
    return asked


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
        placed = _place(stripes, shape, node.shape, offsets, kernel, capabilities)
        if placed is not None:
            return placed
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
            room = take(holes, input_bytes // capabilities.srams, Side.BEGIN)
            if room is None:
                return None
            holes, offset = room
        elif any(part < extent for part, extent in zip(in_stripe, input_shape, strict=True)):
            # What is in SRAM already is read as a whole.
            return None
        inputs.append(Tile(in_stripe, input_bytes, count, offset))
    return PlePlan(tuple(inputs), Tile(out_stripe, output_bytes, count, output[1]), ple_offset)


def form_convert_pass(first: Node, attempt: Attempt) -> ConvertPass | None:
    """Form the pass that begins at a node, and commit it; None if there is not one."""
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
    room = take(attempt.sram.holes, size, side)
    if room is None:
        kept = nearest(first, attempt.in_sram)
        if kept is not None:
            kept.wishes.dram = True
        return None
    made = ConvertPass(nodes, stripe, room[1])
    attempt.commit(made, location, room[1], size)
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
    """Return the first stripe that there is room for, or the last one tried if there is not one.

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


class Severity(Enum):
    """How much a change costs."""

    LIGHT = 0
    GRAVE = 1


def is_prepared(node: Node, attempt: Attempt) -> bool:
    """Say whether an attempt has done what a node needs."""
    match node.work:
        case Relabel():
            return not attempt.compressed(node.source)
        case Concat():
            return all(
                attempt.in_dram(source) and not attempt.compressed(source) for source in node.inputs
            )
        case Sink():
            source = node.source
            usable = attempt.in_dram(source) and not attempt.compressed(source)
            return usable and len(source.users) == 1 and _passes_before(node, attempt)
        case _:
            return attempt.needs_no_pass(node) or attempt.of(node).made_by is not None


def _passes_before(node: Node, attempt: Attempt) -> bool:
    return nearest(node, lambda each: attempt.of(each).made_by is not None) is not None


def repair(graph: Graph, node: Node, attempt: Attempt, severity: Severity) -> bool:
    """Change what kept a node from being prepared; say whether that may help."""
    if isinstance(node.work, Extract):
        _give_stage_behind(graph, node, attempt)
        return False
    changed = _grant(graph, node)
    left_out = attempt.of(node).made_by is None
    match node.work:
        case Mce():
            if left_out and node.wishes.direct and not node.demands.direct:
                node.demands.direct, node.wishes.direct = True, False
                changed = True
        case Clamp():
            changed |= left_out and _give_stage_before(graph, node)
        case FusedPle():
            if left_out and node.wishes.identity_before:
                graph.insert_before(node, 0, identity_after(node.source))
                node.wishes.identity_before = False
                changed = True
            else:
                changed |= left_out and _give_stage_before(graph, node)
        case Requantization():
            grave = severity is Severity.GRAVE
            # Of several in a row the first gets a stage, which the others ride on too.
            rides = isinstance(node.source.work, Requantization) and len(node.source.users) == 1
            if grave and left_out and not rides:
                changed |= _bring_to_stage(graph, node, attempt) or _give_stage_before(graph, node)
        case _:
            changed |= _repair_movement(graph, node, attempt, severity)
    return changed


def _repair_movement(graph: Graph, node: Node, attempt: Attempt, severity: Severity) -> bool:
    """Do as `repair` for nodes that have no part in computing."""
    left_out = attempt.of(node).made_by is None
    match node.work:
        case LonePle() if left_out and len(node.inputs) > 1:
            changes = [_demand_dram(source) for source in node.inputs]
            return any(changes)
        case Relayout() if left_out:
            changed = _demand_dram(node.source)
            if attempt.compressed(node.source):
                changed |= _demand_uncompressed(node.source)
            return changed
        case Relabel():
            return _demand_uncompressed(node.source)
        case Concat():
            changes = [
                _demand_dram(source) | _demand_uncompressed(source) for source in node.inputs
            ]
            return any(changes)
        case Copy() if left_out and attempt.in_sram(node.source):
            return _demand_dram(node.source)
        case Sink():
            changed = _demand_dram(node.source) | _demand_uncompressed(node.source)
            if severity is Severity.GRAVE:
                changed |= _give_own_buffer(graph, node, attempt)
            return changed
        case _:
            return False


def _demand_dram(node: Node) -> bool:
    changed, node.demands.dram = not node.demands.dram, True
    return changed


def _demand_uncompressed(node: Node) -> bool:
    changed, node.demands.uncompressed = not node.demands.uncompressed, True
    return changed


def _give_stage_before(graph: Graph, node: Node) -> bool:
    """Put a stage of the compute engines before what must ride on one and has none of its own."""
    source = node.source
    if isinstance(source.work, Mce) and len(source.users) == 1:
        return False
    graph.insert_before(node, 0, identity_after(source))
    return True


def _bring_to_stage(graph: Graph, node: Node, attempt: Attempt) -> bool:
    """Move a requantisation before the changes of layout that keep it from the stage it rides on.

    They come where the stage's pass cannot write the layout. A stage of its own would round the
    numbers a second time.
    """
    between: list[Node] = []
    source = node.source
    while not isinstance(attempt.of(source).made_by, McePass):
        if not isinstance(source.work, Relayout) or len(source.users) > 1:
            return False
        between.insert(0, source)
        source = source.source
    if not between or len(source.users) > 1 or not _may_be_requantized(source, attempt):
        return False
    move_before(graph, node, between)
    return True


def _may_be_requantized(node: Node, attempt: Attempt) -> bool:
    """Say whether the pass that makes a map could requantise it."""
    made = attempt.of(node).made_by
    kernel = made.kernel if isinstance(made, McePass) else None
    return kernel is None or kernel.kernel in KEEPS_NUMBERS


def _give_stage_behind(graph: Graph, node: Node, attempt: Attempt) -> None:
    """Put a stage after an extraction, which a pass of the compute engines must begin with."""
    followed = len(node.users) == 1 and isinstance(node.users[0].work, Mce)
    if attempt.of(node).made_by is not None or followed:
        return
    stage = graph.insert_after(node, identity_after(node))
    if stage.layout is not node.layout:
        graph.insert_after(stage, _relayout(stage, node.layout))


def _relayout(node: Node, layout: Layout) -> Node:
    ids = set(node.operation_ids)
    return Node(Relayout(), node.shape, node.data_type, node.quantization, layout, ids)


def _give_own_buffer(graph: Graph, node: Node, attempt: Attempt) -> bool:
    """Copy what an inference gives if it is also an intermediate map, or what the inference takes.

    A buffer is only one of these.
    """
    source = node.source
    if len(source.users) == 1 and _passes_before(node, attempt) and not _is_given_twice(node):
        return False
    ids = set(source.operation_ids)
    copy = Node(Copy(), source.shape, source.data_type, source.quantization, source.layout, ids)
    graph.insert_before(node, 0, copy)
    return True


def _is_given_twice(node: Node) -> bool:
    """Say whether another output is the same bytes, whatever shapes they are read in."""
    held = node.source
    while isinstance(held.work, Relabel):
        held = held.source
    waiting = [held]
    while waiting:
        reader = waiting.pop()
        if isinstance(reader.work, Sink) and reader is not node:
            return True
        if reader is held or isinstance(reader.work, Relabel):
            waiting += reader.users
    return False


def _grant(graph: Graph, node: Node) -> bool:
    """Grant the wishes that passes left at a node; say whether one was new."""
    changed = False
    demands, wishes = node.demands, node.wishes
    if wishes.dram and not demands.dram:
        demands.dram, wishes.dram = True, False
        changed = True
    if wishes.uncompressed and not demands.uncompressed:
        demands.uncompressed, wishes.uncompressed = True, False
        changed = True
    if wishes.output_layout is not None and len(node.users) == 1:
        changed |= _change_layout(graph, node, wishes.output_layout)
    return changed


def _change_layout(graph: Graph, node: Node, layout: Layout) -> bool:
    """Change the layout of a node's map to the wished one and back, for passes to divide between.

    The second change keeps the layout that the user was made for.
    """
    user = node.users[0]
    if isinstance(user.work, Relayout) and user.layout is layout:
        return False
    first = graph.insert_before(user, user.inputs.index(node), _relayout(node, layout))
    first.demands.stays = True
    graph.insert_before(user, user.inputs.index(first), _relayout(node, node.layout))
    node.wishes.output_layout = None
    return True


ATTEMPTS_PER_NODE = 10
"""A graph that is not prepared after so many attempts for each of its nodes will never be."""


def schedule(graph: Graph, capabilities: Capabilities, options: CompilationOptions) -> Attempt:
    """Divide a graph into passes; the graph is rewritten and repaired on the way.

    E972 if it cannot be divided; the message names the operations that are left.
    """
    attempts_left = ATTEMPTS_PER_NODE * len(graph.nodes)
    while True:
        rewrite(graph)
        attempt = _attempt(graph, capabilities, options)
        if all(is_prepared(node, attempt) for node in graph.nodes):
            return attempt
        attempts_left -= 1
        if not _repair(graph, attempt) or attempts_left < 0:
            raise _unprepared(graph, attempt)


def _attempt(graph: Graph, capabilities: Capabilities, options: CompilationOptions) -> Attempt:
    """Form passes, each as long as can be, in the order of the nodes."""
    bank_bytes = capabilities.sram_bytes // capabilities.srams
    attempt = Attempt(capabilities, Sram[Node](((0, bank_bytes),)))
    for node in graph.sorted():
        if attempt.of(node).made_by is None and not attempt.needs_no_pass(node):
            _ = (
                form_mce_pass(node, attempt, options)
                or form_ple_pass(node, attempt)
                or form_convert_pass(node, attempt)
            )
        attempt.settle(node)
    return attempt


def _repair(graph: Graph, attempt: Attempt) -> bool:
    nodes = graph.sorted()
    for severity in Severity:
        changes = [repair(graph, node, attempt, severity) for node in nodes]
        if any(changes):
            return True
    return False


def _unprepared(graph: Graph, attempt: Attempt) -> Exception:
    left = [node for node in graph.sorted() if not is_prepared(node, attempt)]
    ids = sorted({number for node in left for number in node.operation_ids})
    return fail(
        "E972",
        f"every operation must fit into {attempt.capabilities.sram_bytes} bytes of SRAM with a "
        f"strategy that is allowed; there is none for operations {', '.join(map(str, ids))}",
        help="leave the operations to the CPU, or try a variant with more SRAM, or all strategies "
        "and block configurations",
    )
