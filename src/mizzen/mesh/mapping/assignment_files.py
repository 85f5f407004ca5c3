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

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mizzen.diagnostics import MizzenError, fail
from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.by_hand import Assignment, layer_index, map_by_hand
from mizzen.mesh.mapping.exchange import parse_partition, placed_as_said
from mizzen.mesh.mapping.mapping import Mapping
from mizzen.mesh.network.network import Network

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Keys = TypeVar("Keys", bound="BaseModel")
LARGEST_FILE_BYTES = 1 << 26
HELP = "docs/reference/mesh-assignments.md has every field"


def parse_by_hand(content: bytes, name: str, network: Network, machine: Machine) -> Mapping:
    """Return the mapping that a file of layers on elements asks for; `name` is what errors say.

    E514 for what is no TOML (or JSON, by its first character), E515 for a field that is wrong,
    E516 for layers or elements that cannot be, E510 and E517 for what does not fit.
    """
    from mizzen.mesh.mapping.assignment_keys import HandKeys

    keys = _valid(HandKeys, _read(content, name), name)
    rows: list[Assignment] = []
    for at, row in enumerate(keys.assign):
        place = f"{name}, assign[{at}]"
        layers = [
            layer_index(network, layer, f"{place}.layers[{index}]")
            for index, layer in enumerate(row.layers)
        ]
        rows.append(Assignment(tuple(layers), tuple(row.elements), place))
    return map_by_hand(network, machine, rows)


def parse_tiles(content: bytes, name: str, mapping: Mapping) -> Mapping:
    """Return a mapping with its tiles where a mapper of the owner's put them.

    JSON, or a partition of METIS, which has numbers only. The errors are those of `parse_by_hand`.
    """
    text = _text(content, name)
    if not text.lstrip().startswith("{"):
        return parse_partition(text, name, mapping)
    from mizzen.mesh.mapping.assignment_keys import TileKeys

    keys = _valid(TileKeys, _read(content, name), name)
    return placed_as_said(mapping, list(keys.elements), name)


def read_by_hand(path: Path, network: Network, machine: Machine) -> Mapping:
    """Read a file of layers on elements. E514 if it cannot be read; see `parse_by_hand`."""
    return parse_by_hand(_bytes(path), path.name, network, machine)


def read_tiles(path: Path, mapping: Mapping) -> Mapping:
    """Read a file of tiles on elements. E514 if it cannot be read; see `parse_tiles`."""
    return parse_tiles(_bytes(path), path.name, mapping)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise fail("E514", f"{path} must be readable: {error.strerror}") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise fail("E514", f"{path} must have at most {LARGEST_FILE_BYTES:,} bytes")
    return content


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise fail("E514", f"{name} must be UTF-8: {error.reason} at {error.start}") from error


def _read(content: bytes, name: str) -> Any:
    text = _text(content, name)
    form = "JSON" if text.lstrip().startswith("{") else "TOML"
    try:
        return json.loads(text) if form == "JSON" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise fail("E514", f"{name} must be {form}: {error}") from error


def _valid(model: type[Keys], keys: Any, name: str) -> Keys:
    from pydantic import ValidationError

    try:
        return model.model_validate(keys)
    except ValidationError as error:
        raise _invalid(name, error) from error


def _invalid(name: str, error: ValidationError) -> MizzenError:
    """Return E515 for the first field that is wrong."""
    first = error.errors()[0]
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    ).lstrip(".")
    came = "" if first["type"] == "missing" else f", not {str(first['input'])[:60]!r}"
    return fail("E515", f"{name}, {place or 'the file'}: {first['msg']}{came}", help=HELP)
