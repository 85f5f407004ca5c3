"""Mapping: a network cut into tiles, their elements, the messages between them and their routes.

A `Mapping` is plain data, whatever made it: our search, a person, or the owner's own mapper. What
makes one lies beside it. It must not know programs: what judges them has to be able to disagree
with what is here.
"""

from mizzen.mesh.mapping.assignment_files import (
    parse_by_hand,
    parse_tiles,
    read_by_hand,
    read_tiles,
)
from mizzen.mesh.mapping.exchange import metis_graph, tile_graph
from mizzen.mesh.mapping.mapping import Mapping, Message, Tile
from mizzen.mesh.mapping.memory import Holding, Part, element_bytes, holdings_of
from mizzen.mesh.mapping.options import MappingOptions, Multicast, Placement, Solver, SumSplit
from mizzen.mesh.mapping.search import map_network

__all__ = [
    "Holding",
    "Mapping",
    "MappingOptions",
    "Message",
    "Multicast",
    "Part",
    "Placement",
    "Solver",
    "SumSplit",
    "Tile",
    "element_bytes",
    "holdings_of",
    "map_network",
    "metis_graph",
    "parse_by_hand",
    "parse_tiles",
    "read_by_hand",
    "read_tiles",
    "tile_graph",
]
