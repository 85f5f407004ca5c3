"""Assignments of layers and tiles to elements: kept, or refused with place and remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pymetis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.mesh.emission import emit
from mizzen.mesh.machine import find_machine, without
from mizzen.mesh.mapping import (
    Mapping,
    MappingOptions,
    element_bytes,
    map_network,
    metis_graph,
    parse_by_hand,
    parse_tiles,
    read_by_hand,
    read_tiles,
    tile_graph,
)
from mizzen.mesh.program.checker import check

from .networks import small_network

GRID = find_machine("grid4x4")
NETWORK = small_network()
EVERY_FIELD = "\n  help docs/reference/mesh-assignments.md has every field"
HAND = """
format = 1

[[assign]]
layers = ["convolution 0", "convolution 1"]
elements = [0, 1, 2]

[[assign]]
layers = [2]
elements = [7]

[[assign]]
layers = ["pool"]
elements = [12, 13, 14, 15]
"""


def by_hand(content: str) -> Mapping:
    """Return the mapping of the small network on the grid that a file asks for."""
    return parse_by_hand(content.encode(), "hand.toml", NETWORK, GRID)


def searched() -> Mapping:
    """Return the mapping that tiles are assigned anew of."""
    return map_network(NETWORK, GRID, MappingOptions(replicas=1))


def test_layers_lie_where_the_file_puts_them() -> None:
    mapping = by_hand(HAND)
    assert check(emit(mapping)) == ()
    where = {
        layer: {tile.element for tile in mapping.tiles if tile.layer == layer} for layer in range(5)
    }
    assert where[0] | where[1] == {0, 1, 2}
    assert where[2] == {7}
    assert where[4] <= {12, 13, 14, 15}
    assert len(where[4]) == 3, "48 channels in groups of 16"
    assert not where[3] & {0, 1, 2, 7, 12, 13, 14, 15}


def test_all_layers_on_one_element_of_a_kind() -> None:
    machine = find_machine("hetero")
    content = '{"format": 1, "assign": [{"layers": [0, 1, 2, 3, 4], "elements": [3]}]}'
    mapping = parse_by_hand(content.encode(), "all.json", NETWORK, machine)
    assert {tile.element for tile in mapping.tiles} == {3}
    assert mapping.messages == ()
    assert check(emit(mapping)) == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "format = 1",
            "format = 2",
            "error[E515]: hand.toml, format: must be 1, not 2" + EVERY_FIELD,
        ),
        (
            "format = 1",
            "",
            "error[E515]: hand.toml, format: must be given, not left out" + EVERY_FIELD,
        ),
        (
            "elements = [7]",
            'elements = ["x"]',
            (
                "error[E515]: hand.toml, assign[1].elements[0]: must be a whole number of "
                "0..1048575, not 'x'"
            )
            + EVERY_FIELD,
        ),
        (
            "elements = [7]",
            "elements = [7]\nreplica = 0",
            "error[E515]: hand.toml: a key must be one of elements, layers, not assign[1].replica"
            + EVERY_FIELD,
        ),
        (
            "elements = [7]",
            "elements = [16]",
            "error[E516]: hand.toml, assign[1].elements[0] must be an element in 0..15, not 16",
        ),
        (
            "elements = [7]",
            "elements = [2]",
            (
                "error[E516]: hand.toml, assign[1].elements[0] must be an element that"
                " hand.toml, assign[0] does not have, not 2"
            ),
        ),
        (
            "layers = [2]",
            "layers = [9]",
            "error[E516]: hand.toml, assign[1].layers[0] must be a layer in 0..4, not 9",
        ),
        (
            '["pool"]',
            '["poll"]',
            (
                "error[E516]: hand.toml, assign[2].layers[0] must be a layer of small, not"
                " 'poll'\n  help did you mean pool?"
            ),
        ),
        (
            "layers = [2]",
            "layers = [1]",
            (
                "error[E516]: hand.toml, assign[1].layers must be layers that hand.toml,"
                " assign[0] does not have, not convolution 1"
            ),
        ),
        (
            '"convolution 1"]',
            '"convolution 3"]',
            (
                "error[E516]: hand.toml, assign[0].layers must be layers that follow each"
                " other, not (0, 3)"
            ),
        ),
        (
            "format = 1",
            "format =",
            "error[E514]: hand.toml must be an assignment in TOML: Invalid value (at line 2, "
            "column 9)" + EVERY_FIELD,
        ),
    ],
)
def test_impossible_assignments_are_refused_where_they_are(old: str, new: str, told: str) -> None:
    with pytest.raises(MizzenError) as caught:
        by_hand(HAND.replace(old, new, 1))
    assert str(caught.value) == told


def test_dead_and_mixed_elements_are_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        parse_by_hand(HAND.encode(), "hand.toml", NETWORK, without(GRID, [1]))
    assert str(caught.value) == (
        "error[E516]: hand.toml, assign[0].elements[1] must be an element that takes"
        " programs, not"
        " 1, which is dead"
    )
    content = '{"format": 1, "assign": [{"layers": [0], "elements": [0, 5]}]}'
    with pytest.raises(MizzenError) as caught:
        parse_by_hand(content.encode(), "m.json", NETWORK, find_machine("hetero"))
    assert str(caught.value) == (
        "error[E516]: m.json, assign[0].elements must be elements of one kind, so that"
        " tiles are"
        " equal, not fast, slow"
    )


def test_too_full_element_is_told_by_how_much() -> None:
    network = small_network(40, 64)
    with pytest.raises(MizzenError) as caught:
        parse_by_hand(HAND.encode(), "hand.toml", network, GRID)
    assert str(caught.value) == (
        "error[E517]: the tiles on element 0 (chip 0, router 0,0, element 0) must fit"
        " its 98,304"
        " bytes of data memory, but need 114,176, 15,872 too many: convolution 0,"
        " convolution 1\n"
        "  help put some of them on another element, or split their layers further"
    )


def test_files_are_read_from_odd_places(tmp_path: Path) -> None:
    path = tmp_path / "by hand é.toml"
    path.write_text(HAND)
    assert read_by_hand(path, NETWORK, GRID).tiles == by_hand(HAND).tiles
    with pytest.raises(MizzenError) as caught:
        read_tiles(tmp_path / "none.json", searched())
    assert str(caught.value) == (
        f"error[E514]: {tmp_path / 'none.json'} must be an assignment in TOML: "
        f"No such file or directory{EVERY_FIELD}"
    )


def test_own_mapper_gets_the_graph_and_gives_elements() -> None:
    mapping = searched()
    graph = json.loads(json.dumps(tile_graph(mapping)))
    assert len(graph["tiles"]) == len(mapping.tiles)
    assert sum(row["bytes"] for row in graph["tiles"] if row["element"] == 0) == element_bytes(
        mapping, 0
    )
    usable = [row["element"] for row in graph["elements"]]
    elements = [usable[-1 - row["element"] % len(usable)] for row in graph["tiles"]]
    again = parse_tiles(
        json.dumps({"format": 1, "elements": elements}).encode(), "own.json", mapping
    )
    assert [tile.element for tile in again.tiles] == elements
    assert check(emit(again)) == ()


def test_metis_cuts_the_graph_and_its_partition_is_read() -> None:
    mapping = searched()
    lines = metis_graph(mapping).splitlines()
    vertices, edges, form = lines[0].split()
    assert (int(vertices), form) == (len(mapping.tiles), "011")
    rows = [[int(word) for word in line.split()] for line in lines[1:]]
    assert sum(len(row) // 2 for row in rows) == 2 * int(edges)
    adjacency = [[at - 1 for at in row[1::2]] for row in rows]
    _, parts = pymetis.part_graph(8, adjacency=adjacency)
    again = parse_tiles("\n".join(map(str, parts)).encode(), "graph.part.8", mapping)
    assert [tile.element for tile in again.tiles] == list(parts)
    assert check(emit(again)) == ()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("0\n1\n", "error[E514]: own: there must be {count} lines, one for each tile, not 2"),
        ("{all}", "error[E514]: own, line 1: there must be the number of a part, not 'x'"),
        (
            "{part}",
            (
                "error[E516]: own, line 1: the part must be in 0..15, not 99\n  help a part is"
                " an element that takes programs, in order"
            ),
        ),
        (
            '{"format": 1, "elements": [0]}',
            "error[E514]: own, elements: there must be {count}, one a tile, not 1",
        ),
        ('{"format": 1}', "error[E515]: own, elements: must be given, not left out" + EVERY_FIELD),
        (
            "{last}",
            (
                "error[E516]: own, elements[0] must be an element that takes programs, not"
                " 16\n  help the tile graph lists them under elements"
            ),
        ),
    ],
)
def test_impossible_tiles_are_refused_where_they_are(content: str, told: str) -> None:
    mapping = searched()
    count = len(mapping.tiles)
    made = {
        "{all}": "x\n" * count,
        "{part}": "99\n" * count,
        "{last}": json.dumps({"format": 1, "elements": [16] * count}),
    }
    with pytest.raises(MizzenError) as caught:
        parse_tiles(made.get(content, content).encode(), "own", mapping)
    assert str(caught.value) == told.replace("{count}", str(count))


def holds_or_refused(make: Callable[[], Mapping]) -> None:
    """Hold what is made to the checker, or its refusal to the codes of assignments."""
    try:
        mapping = make()
    except MizzenError as error:
        code = str(error)[:11]
    else:
        assert check(emit(mapping)) == ()
        return
    assert code in {f"error[E{number}]" for number in (510, 514, 515, 516, 517)}


SEEDS = (HAND, '{"format": 1, "assign": [{"layers": [0, 1], "elements": [3, 4]}]}')
VALUES = st.one_of(
    st.integers(-3, 20),
    st.sampled_from(["convolution 3", "", "pool", "0", "[]", "{", "true", "1e400", "nan", "\x00"]),
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a file in which some pieces are gone, twice there, or others."""
    content = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 12)))
        piece = draw(st.one_of(st.just(""), VALUES.map(str), st.just(content[start:stop] * 2)))
        content = content[:start] + piece + content[stop:]
    return content.encode()


@pytest.mark.parametrize("cases", [60, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_mutated_files_are_mapped_or_refused(cases: int) -> None:
    @settings(max_examples=cases, deadline=2000)
    @given(mutated())
    def run(content: bytes) -> None:
        holds_or_refused(lambda: parse_by_hand(content, "mutated", NETWORK, GRID))

    run()


@pytest.mark.parametrize("cases", [60, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_mutated_tiles_are_mapped_or_refused(cases: int) -> None:
    mapping = searched()
    start = [tile.element for tile in mapping.tiles]

    @settings(max_examples=cases, deadline=2000)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        elements = [*start]
        for _ in range(data.draw(st.integers(1, 5))):
            at = data.draw(st.integers(0, len(elements) - 1))
            elements[at] = data.draw(st.integers(-1, 17))
        content = json.dumps({"format": 1, "elements": elements}).encode()
        holds_or_refused(lambda: parse_tiles(content, "mutated", mapping))

    run()
