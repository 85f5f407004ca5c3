"""Tile graphs for the owner's own mapper, and its assignments back: JSON, and files of METIS.

The graph has a row for each tile (layer, box, time, memory) and for each message (from, to, bytes),
and one for each element that takes programs. What comes back is an element for each tile. The form
is in `docs/reference/mesh-assignments.md`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.mesh.machine.work import cycles
from mizzen.mesh.mapping.given import reassigned
from mizzen.mesh.mapping.mapping import Mapping
from mizzen.mesh.mapping.memory import holdings_of
from mizzen.mesh.network.regions import work_of

FORMAT = 1
WEIGHT_BYTES = 16
"""METIS sums weights of edges in 32 bits: bytes are counted in units of so many."""


def tile_graph(mapping: Mapping) -> dict[str, Any]:
    """Return the graph of a mapping's tiles, as `json.dumps` takes it."""
    return {
        "format": FORMAT,
        "machine": mapping.machine.name,
        "network": mapping.network.name,
        "replicas": mapping.replicas,
        "elements": [_element(mapping, element) for element in mapping.machine.usable.tolist()],
        "tiles": [_tile(mapping, index) for index in range(len(mapping.tiles))],
        "messages": [
            {
                "from": message.source,
                "to": list(message.targets),
                "tensor": None
                if message.tensor is None
                else mapping.network.tensors[message.tensor].name,
                "bytes": message.size_bytes,
            }
            for message in mapping.messages
        ],
    }


def _element(mapping: Mapping, element: int) -> dict[str, Any]:
    machine = mapping.machine
    router = int(machine.element_router[element])
    return {
        "element": element,
        "chip": int(machine.router_chip[router]),
        "router": [int(machine.router_x[router]), int(machine.router_y[router])],
        "kind": machine.kind_of(element).name,
        "data_bytes": machine.kind_of(element).data_bytes,
    }


def _tile(mapping: Mapping, index: int) -> dict[str, Any]:
    tile = mapping.tiles[index]
    layer = mapping.network.layers[tile.layer]
    return {
        "tile": index,
        "layer": layer.name,
        "replica": tile.replica,
        "box": [list(span) for span in tile.box],
        "input_channels": None if tile.channels is None else list(tile.channels),
        "sums_into": tile.sums_into,
        "cycles": _cycles(mapping, index),
        "bytes": sum(holding.size_bytes for holding in holdings_of(mapping, index)),
        "element": tile.element,
    }


def _cycles(mapping: Mapping, index: int) -> int:
    tile = mapping.tiles[index]
    layer = mapping.network.layers[tile.layer]
    partials = len(mapping.givers.get(index, ()))
    work = work_of(mapping.network, layer, tile.box, tile.channels, partials)
    return cycles(mapping.machine.kind_of(tile.element), work)


def metis_graph(mapping: Mapping) -> str:
    """Return the graph as METIS reads it: a line for each tile, from 1.

    A vertex weighs its cycles; an edge the bytes between two tiles, in units of 16, at least 1.
    """
    edges: dict[tuple[int, int], int] = {}
    for message in mapping.messages:
        for target in message.targets:
            pair = min(message.source, target), max(message.source, target)
            edges[pair] = edges.get(pair, 0) + message.size_bytes
    lines: list[list[int]] = [[_cycles(mapping, index)] for index in range(len(mapping.tiles))]
    for (one, other), size in sorted(edges.items()):
        weight = max(1, size // WEIGHT_BYTES)
        lines[one] += [other + 1, weight]
        lines[other] += [one + 1, weight]
    printed = [f"{len(lines)} {len(edges)} 011"]
    printed += [" ".join(map(str, line)) for line in lines]
    return "\n".join(printed) + "\n"


def parse_partition(content: str, name: str, mapping: Mapping) -> Mapping:
    """Return a mapping as a partition of METIS says: a line a tile, the part that it is in.

    Part `p` is the element of that place among those that take programs. E514 for what is no such
    file, E516 for parts that do not exist, E517 where a memory is too small.
    """
    lines = content.split()
    if len(lines) != len(mapping.tiles):
        raise _unlike(name, f"{len(mapping.tiles)} lines, one for each tile", len(lines))
    usable = mapping.machine.usable.tolist()
    elements: list[int] = []
    for number, line in enumerate(lines, 1):
        if not line.isascii() or not line.isdigit() or len(line) > 9:
            raise _unlike(f"{name}, line {number}", "the number of a part", repr(line[:20]))
        if int(line) >= len(usable):
            must = f"{name}, line {number}: the part must be in 0..{len(usable) - 1}, not {line}"
            raise fail("E516", must, help="a part is an element that takes programs, in order")
        elements.append(usable[int(line)])
    return reassigned(mapping, elements)


def placed_as_said(mapping: Mapping, elements: list[int], name: str) -> Mapping:
    """Return a mapping with its tiles on these elements, one for each tile.

    E516 for elements that do not exist or take no programs, E517 where a memory is too small.
    """
    if len(elements) != len(mapping.tiles):
        raise _unlike(f"{name}, elements", f"{len(mapping.tiles)}, one a tile", len(elements))
    machine = mapping.machine
    usable = np.zeros(machine.elements, bool)
    usable[machine.usable] = True
    for tile, element in enumerate(elements):
        if not 0 <= element < machine.elements or not usable[element]:
            raise fail(
                "E516",
                f"{name}, elements[{tile}] must be an element that takes programs, not {element}",
                help="the tile graph lists them under elements",
            )
    return reassigned(mapping, elements)


def _unlike(place: str, must: str, came: object) -> MizzenError:
    return fail("E514", f"{place}: there must be {must}, not {came}")
