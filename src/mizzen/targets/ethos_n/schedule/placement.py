"""Finding places in SRAM for the tiles of a pass.

Ref: Ethos-N driver stack 23.02, the Support Library's SRAM allocation.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.commands_values import Strategy
from mizzen.targets.ethos_n.config import BlockConfig, Capabilities
from mizzen.targets.ethos_n.schedule.plan import McePlan, Tile
from mizzen.targets.ethos_n.schedule.sram import Holes, Side, take
from mizzen.targets.ethos_n.schedule.stripes import Cut, Piece


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
        found = take(holes, parts.input.bytes // banks, Side.BEGIN)
        if found is None:
            return None
        holes, input_offset = found
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
