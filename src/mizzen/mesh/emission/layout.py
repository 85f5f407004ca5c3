"""Where what a tile keeps lies in the memory of its element.

What it keeps is the mapping's rule (`mizzen.mesh.mapping.memory`). Regions lie one after the other
in the order of tiles; none shares its bytes with another.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.mesh.mapping.mapping import Mapping
from mizzen.mesh.mapping.memory import Holding, Part, holdings_of
from mizzen.mesh.program import Region, RegionKind


@dataclass(slots=True)
class TileRegions:
    """Indices of a tile's regions among those of its element.

    inputs  by tensor
    sums    by the tile that gives them
    """

    inputs: dict[int, int]
    sums: dict[int, int]
    constants: int | None = None
    output: int = -1


class Layout:
    """The regions of one element, added tile by tile."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.regions: list[Region] = []
        self._end = 0

    def add(self, tile: int) -> TileRegions:
        """Add the regions of a tile."""
        regions = TileRegions({}, {})
        for holding in holdings_of(self.mapping, tile):
            index = self._place(holding)
            match holding.part:
                case Part.CONSTANTS:
                    regions.constants = index
                case Part.INPUT:
                    assert holding.tensor is not None
                    regions.inputs[holding.tensor] = index
                case Part.SUMS:
                    assert holding.giver is not None
                    regions.sums[holding.giver] = index
                case Part.OUTPUT:
                    regions.output = index
                case Part.SCRATCH:
                    pass
        return regions

    def _place(self, holding: Holding) -> int:
        kind = RegionKind(holding.part.value)
        address = self._end
        self._end += holding.size_bytes
        self.regions.append(
            Region(kind, address, holding.slot_bytes, holding.slots, holding.tensor, holding.box)
        )
        return len(self.regions) - 1
