"""Files of assignments: layers on elements by hand (TOML, JSON), tiles on elements (JSON).

By hand, each row of `assign` has layers, by name or index, and elements; what is left over is
searched for:

    format = 1

    [[assign]]
    layers = ["convolution 0", "convolution 1"]
    elements = [0, 1, 2]

From a mapper of one's own, `elements` has an element for each tile of the exported graph:

    {"format": 1, "elements": [17, 4, 4, 20]}
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mizzen.documents import Form, Syntax, content_of, parse, values_of
from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.by_hand import Assignment, layer_index, map_by_hand
from mizzen.mesh.mapping.exchange import parse_partition, placed_as_said
from mizzen.mesh.mapping.mapping import Mapping
from mizzen.mesh.network.network import Network

TOML = Form(
    "an assignment in TOML",
    Syntax.TOML,
    "E514",
    "E515",
    largest_bytes=1 << 26,
    help="docs/reference/mesh-assignments.md has every field",
    wording="{name}, {place}: must {must}",
)
JSON = replace(TOML, what="an assignment in JSON", syntax=Syntax.JSON)


def parse_by_hand(content: bytes, name: str, network: Network, machine: Machine) -> Mapping:
    """Return the mapping that a file of layers on elements asks for; `name` is what errors say.

    E514 for what is no TOML (or JSON, by its first character), E515 for a field that is wrong,
    E516 for layers or elements that cannot be, E510 and E517 for what does not fit.
    """
    from mizzen.mesh.mapping.assignment_keys import HandKeys

    values, form = _values(content, name)
    keys = parse(HandKeys, values, name, form)
    assignments: list[Assignment] = []
    for at, entry in enumerate(keys.assign):
        place = f"{name}, assign[{at}]"
        layers = [
            layer_index(network, layer, f"{place}.layers[{index}]")
            for index, layer in enumerate(entry.layers)
        ]
        assignments.append(Assignment(tuple(layers), tuple(entry.elements), place))
    return map_by_hand(network, machine, assignments)


def parse_tiles(content: bytes, name: str, mapping: Mapping) -> Mapping:
    """Return a mapping with its tiles where a mapper of the owner's put them.

    JSON, or a partition of METIS, which has numbers only. The errors are those of `parse_by_hand`.
    """
    text = _text(content, name)
    if not text.lstrip().startswith("{"):
        return parse_partition(text, name, mapping)
    from mizzen.mesh.mapping.assignment_keys import TileKeys

    keys = parse(TileKeys, content, name, JSON)
    return placed_as_said(mapping, list(keys.elements), name)


def read_by_hand(path: Path, network: Network, machine: Machine) -> Mapping:
    """Read a file of layers on elements. E514 if it cannot be read; see `parse_by_hand`."""
    return parse_by_hand(content_of(path, TOML), path.name, network, machine)


def read_tiles(path: Path, mapping: Mapping) -> Mapping:
    """Read a file of tiles on elements. E514 if it cannot be read; see `parse_tiles`."""
    return parse_tiles(content_of(path, TOML), path.name, mapping)


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TOML.refusal(name, str(error)) from None


def _values(content: bytes, name: str) -> tuple[dict[str, object], Form]:
    """Return the values of a file, and its form: JSON by its first character, else TOML."""
    form = JSON if _text(content, name).lstrip().startswith("{") else TOML
    return values_of(content, name, form), form
