"""Forming a pass that changes a map's layout, or copies it, by the DMA alone.

Ref: Ethos-N driver stack 23.02, the Support Library's `ConversionPass`.
"""

from __future__ import annotations

from itertools import product

from mizzen.targets.ethos_n.commands_values import Location
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.lower.graph import Layout, Node, nearest
from mizzen.targets.ethos_n.lower.work import Copy, Relabel, Relayout
from mizzen.targets.ethos_n.schedule.attempt import Attempt, ConvertPass
from mizzen.targets.ethos_n.schedule.placement import side_across
from mizzen.targets.ethos_n.schedule.plan import (
    BRICK_CHANNELS,
    BRICK_HEIGHT,
    BRICK_WIDTH,
    brick_bytes,
    divide_up,
    round_up,
)
from mizzen.targets.ethos_n.schedule.sram import Holes, Side, take
from mizzen.targets.ethos_n.tensors import Shape


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
