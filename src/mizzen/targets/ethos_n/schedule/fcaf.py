"""The compressed formats of feature maps in DRAM: what their cells hold and how large they are.

What is in a cell is the hardware's; a cell always has the room of an incompressible one.

Ref: Ethos-N driver stack 23.02, `g_FcafDeepCellShape`, `g_FcafWideCellShape`,
`g_FcafCellSizeBytes`.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.commands_values import Format
from mizzen.targets.ethos_n.schedule.plan import divide_up
from mizzen.targets.ethos_n.tensors import Shape

CELLS = {Format.FCAF_DEEP: (8, 8, 32), Format.FCAF_WIDE: (8, 16, 16)}
"""Height, width and channels of a cell; the formats in the order of preference."""
CELL_BYTES = 2112


def consists_of_cells(format: Format, extents: tuple[int, ...]) -> bool:
    """Say whether height, width and channels are whole cells."""
    return all(extent % side == 0 for extent, side in zip(extents, CELLS[format], strict=True))


def cell_bytes(shape: Shape, format: Format) -> int:
    """Return the size of a compressed map."""
    cells = 1
    for extent, side in zip(shape[1:], CELLS[format], strict=True):
        cells *= divide_up(extent, side)
    return CELL_BYTES * cells
