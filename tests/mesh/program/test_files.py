"""Files of programs: what is written is read again, and what is damaged is refused by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.mesh.emission import emit
from mizzen.mesh.execution import execute
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import Network, network_of_tflite
from mizzen.mesh.program import check, parse_program, program_bytes, read_program, write_program
from mizzen.mesh.program.files.container import DIGEST_BYTES, HEAD, MAGIC, VERSION
from mizzen.mesh.program.files.tables import COLUMNS

Made = dict[str, Callable[[], Mapping]]


def test_what_is_written_is_read_again(hand_mapping: Mapping, tmp_path: Path) -> None:
    program = emit(hand_mapping)
    path = tmp_path / "a program.mesh"
    assert write_program(program, path) == path.stat().st_size
    found = read_program(path)
    assert found.elements == program.elements
    assert found.routes == program.routes
    assert program_bytes(found) == path.read_bytes()
    assert check(found) == ()
    given = np.random.default_rng(2).integers(-128, 128, (3, *program.network.tensors[0].shape))
    images = [given.astype(np.int8)]
    for one, other in zip(
        execute(found, images).outputs, execute(program, images).outputs, strict=True
    ):
        assert np.array_equal(one, other)


def test_constants_are_stored_once(by_hand: Made) -> None:
    mapping = by_hand["replicas"]()
    one = replace(mapping, replicas=1, tiles=mapping.tiles[:3], messages=())
    found = [
        {name: row["shape"] for name, row in opened(program_bytes(emit(each)))[0]["arrays"].items()}
        for each in (mapping, one)
    ]
    kept, fewer = ({name: row[name] for name in row if "constant." in name} for row in found)
    assert kept == fewer
    assert len(kept) == 2, "the weights of each layer"


def test_operators_of_tflite_go_with_the_file(
    models: Path, split_at_random: Callable[[Network, int], Mapping]
) -> None:
    content = (models / "kws_ref_model.tflite").read_bytes()
    program = emit(split_at_random(network_of_tflite(content, "kws"), 1))
    found = parse_program(program_bytes(program), "kws.mesh")
    images = np.random.default_rng(1).integers(-128, 128, (2, 1, 49, 10, 1)).astype(np.int8)
    (one,), (other,) = (execute(row, [images]).outputs for row in (found, program))
    assert np.array_equal(one, other)


def opened(content: bytes) -> tuple[dict[str, Any], bytearray]:
    """Return the header and the arrays of a file."""
    _, _, length = HEAD.unpack_from(content)
    header = json.loads(content[HEAD.size : HEAD.size + length])
    return header, bytearray(content[HEAD.size + length : -DIGEST_BYTES])


def closed(header: Any, payload: bytes | bytearray) -> bytes:
    """Return a file with a right checksum."""
    text = json.dumps(header).encode()
    content = HEAD.pack(MAGIC, VERSION, len(text)) + text + payload
    return content + hashlib.sha256(content).digest()


def refusal(content: bytes) -> str:
    with pytest.raises(MizzenError) as error:
        parse_program(content, "p.mesh")
    return str(error.value).split("\n")[0]


def test_what_is_no_file_of_a_program_is_refused(by_hand: Made, tmp_path: Path) -> None:
    content = program_bytes(emit(by_hand["split_channels"]()))
    assert refusal(b"") == "error[E537]: p.mesh must begin with b'MZNMESH\\n', not b''"
    assert refusal(b"MZNMESH\n\x02\0\0\0" + content[12:]) == (
        "error[E537]: p.mesh must be of version 1, not 2"
    )
    assert refusal(content[:-1] + b"\0") == (
        "error[E537]: p.mesh must have the checksum at its end, and has another"
    )
    long = HEAD.pack(MAGIC, VERSION, 1 << 30) + bytes(64)
    assert refusal(long + hashlib.sha256(long).digest()) == (
        "error[E537]: p.mesh must have a header of 1073741824 bytes, and is shorter"
    )
    with pytest.raises(MizzenError) as error:
        read_program(tmp_path / "missing.mesh")
    assert error.value.diagnostic.message == (
        f"{tmp_path / 'missing.mesh'} must be readable: No such file or directory"
    )
    with pytest.raises(MizzenError) as error:
        write_program(emit(by_hand["split_channels"]()), tmp_path)
    assert error.value.diagnostic.message == (
        f"{tmp_path} must be a file that can be written: is a directory"
    )


HEADERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "replicas": (
        lambda header: header.update(replicas=0),
        "replicas: must be a whole number of 1..65536, not 0",
    ),
    "a key": (
        lambda header: header.update(colour=1),
        "a key must be one of arrays, machine, network, replicas, streams, not colour",
    ),
    "kernel": (
        lambda header: header["network"]["layers"][0]["window"].update(kernel=[0, 3]),
        "network.layers[0].window.kernel[0]: must be a whole number of 1..16777216, not 0",
    ),
    "tensor": (
        lambda header: header["network"]["layers"][1].update(inputs=[3]),
        "network.layers[1].inputs: must be below 3, not 3",
    ),
    "order": (
        lambda header: header["network"].update(inputs=[]),
        "network.layers[0].inputs: must be tensors given before, not 0",
    ),
    "shape": (
        lambda header: header["network"]["tensors"][0].update(shape=[1 << 20, 1 << 20]),
        "network.tensors[0].shape: must be at most 67108864 elements, not (1048576, 1048576)",
    ),
    "chain": (
        lambda header: header["network"]["layers"][0].update(chain="graph {"),
        "network.layers[0].chain: must be operations of TOSA, not error[E810]",
    ),
    "a constant without numbers": (
        lambda header: header["network"]["layers"][0].update(
            chain=header["network"]["layers"][0]["chain"].replace("{values = ", "{x = ")
        ),
        "network.layers[0].chain: must be operations of TOSA, not ",
    ),
    "array": (
        lambda header: header["arrays"].pop("routes"),
        "arrays.routes: must be there, not left out",
    ),
    "type": (
        lambda header: header["arrays"]["routes"].update(type="<f8"),
        "arrays.routes.type: must be <i8, not <f8",
    ),
    "columns": (
        lambda header: header["arrays"]["routes"].update(shape=[2, 3]),
        "arrays.routes.shape: must be [rows, 4], not [2, 3]",
    ),
    "offset": (
        lambda header: header["arrays"]["routes"].update(offset=1 << 40),
        "arrays.routes.offset: must be within ",
    ),
    "rows": (
        lambda header: header["arrays"]["machine.router_x"].update(shape=[3]),
        "machine.router_x: must be 16 rows, one for each router, not 3",
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_wrong_header_is_refused_by_the_name_of_its_field(name: str, by_hand: Made) -> None:
    change, text = HEADERS[name]
    header, payload = opened(program_bytes(emit(by_hand["split_channels"]())))
    change(header)
    said = refusal(closed(header, payload))
    assert said.startswith((f"error[E538]: p.mesh, {text}", f"error[E538]: p.mesh: {text}"))


CELLS = {
    ("regions", 0, "kind", 9): "regions[0].kind: must be from 0 to 4, not 9",
    ("regions", 1, "box", 99): "regions[1].box: must be from 0 to ",
    ("regions", 1, "slots", 0): "elements[0].regions[1].slots: must be from 1 to 4294967295, not 0",
    ("instructions", 0, "operation", 6): "instructions[0].operation: must be from 0 to 5, not 6",
    ("instructions", 1, "first", 77): "instructions[1].first: must be from 0 to 4, not 77",
    ("instructions", 2, "first", 77): "elements[0].instructions[2]: the message must be below 3",
    ("instructions", 0, "box", 0): "instructions[0].box: must be -1, since it has no meaning here",
    ("instructions", 1, "second", 0): "instructions[1].second: must be -1, since it has no meaning",
    ("regions", 0, "tensor", 0): "elements[0].regions[0].tensor: constants must have no tensor",
    ("computes", 0, "layer", 5): "elements[0].instructions[1]: the layer must be below 2, not 5",
    ("computes", 0, "gives_sums", 2): "computes[0].gives_sums: must be from 0 to 1, not 2",
    ("computes", 0, "operands", 50): "computes[0].operands: must be from 0 to 5, not 50",
    ("elements", 0, "regions", 2): "regions: must be 14 rows, as elements says, not 15",
    ("elements", 0, "element", 16): "elements[0]: the element must be below 16, not 16",
    ("routes", 0, "links", -1): "routes[0].links: must be from 0 to ",
}


def test_a_wrong_cell_is_refused_by_its_place(by_hand: Made) -> None:
    content = program_bytes(emit(by_hand["split_channels"]()))
    for (table, row, column, value), text in CELLS.items():
        header, payload = opened(content)
        place = header["arrays"][table]
        cell = row * place["shape"][1] + COLUMNS[table].index(column)
        np.frombuffer(payload, "<i8", offset=place["offset"])[cell : cell + 1] = value
        assert refusal(closed(header, payload)).startswith(f"error[E538]: p.mesh, {text}")


INTERESTING = [-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 7, 16, 255, 1 << 16, 1 << 31, 1 << 40]
REPLACED: list[Any] = [None, True, -1, 0, 1, 3, 1 << 20, 1 << 70, 1.5, "", "x", [], {}, [[]]]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to each part of a document."""
    rows: list[tuple[Any, ...]] = [path] if path else []
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        rows += [row for key, each in pairs for row in leaves(each, (*path, key))]
    return rows


def mutated(content: bytes, draw: Callable[[int], int]) -> bytes:
    """Change a byte, a number of a table, or a part of the header."""
    header, payload = opened(content)
    way = draw(5)
    if way == 0:
        damaged = bytearray(content)
        damaged[draw(len(content))] ^= 1 << draw(8)
        return bytes(damaged)
    if way in (1, 2):
        tables = [name for name in header["arrays"] if header["arrays"][name]["type"] == "<i8"]
        place = header["arrays"][tables[draw(len(tables))]]
        cells = int(np.prod(place["shape"]))
        if cells:
            view = np.frombuffer(payload, "<i8", cells, place["offset"])
            cell = draw(cells)
            step = INTERESTING[draw(len(INTERESTING))]
            view[cell] = step if draw(2) else int(view[cell]) + (1, -1, 16, 100)[draw(4)]
        return closed(header, payload)
    if way == 3:
        rows = leaves(header)
        *path, last = rows[draw(len(rows))]
        parent = header
        for key in path:
            parent = parent[key]
        if draw(4) == 0:
            del parent[last]
        else:
            parent[last] = REPLACED[draw(len(REPLACED))]
        return closed(header, payload)
    text = json.dumps(header)
    at = draw(len(text))
    changed = f"{text[:at]}{chr(32 + draw(95))}{text[at + draw(2) :]}".encode()
    whole = HEAD.pack(MAGIC, VERSION, len(changed)) + changed + payload
    return whole + hashlib.sha256(whole).digest()


def judged(content: bytes) -> str:
    """Return how a file is judged: the code it is refused with, whether anything is found."""
    try:
        program = parse_program(content, "p.mesh")
    except MizzenError as error:
        return error.diagnostic.code
    return "found" if check(program) else "holds"


@settings(max_examples=150)
@given(data=st.data())
@pytest.mark.parametrize("name", ["split_sums", "residual", "several_tiles_an_element"])
def test_a_mutated_file_is_refused_or_found(name: str, data: st.DataObject, by_hand: Made) -> None:
    content = program_bytes(emit(by_hand[name]()))
    found = judged(mutated(content, lambda below: data.draw(st.integers(0, below - 1))))
    assert found in ("E537", "E538", "found", "holds")


@pytest.mark.sweep
def test_ten_thousand_mutated_files(by_hand: Made) -> None:
    contents = [program_bytes(emit(made())) for made in by_hand.values()]
    random = np.random.default_rng(15)
    counts: dict[str, int] = {}
    for index in range(10_000):
        content = mutated(contents[index % len(contents)], lambda n: int(random.integers(n)))
        found = judged(content)
        counts[found] = counts.get(found, 0) + 1
    assert counts.keys() == {"E537", "E538", "found", "holds"}
    assert min(counts["E537"], counts["E538"], counts["found"]) > 500, counts
