"""The machines that are built in, and what errors say of files that are wrong."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.mesh.machine import (
    LinkKind,
    Work,
    WorkKind,
    cycles,
    damaged,
    find_machine,
    machine_names,
    parse_machine,
    read_machine,
    without_chip,
)
from mizzen.mesh.machine.reading import FOLDER

NAMES = machine_names()
BOARD = (FOLDER / "spinnaker2-48.toml").read_bytes()


@pytest.mark.parametrize(
    ("name", "elements", "usable", "chips"),
    [
        ("one", 1, 1, 1),
        ("grid4x4", 16, 16, 1),
        ("simba36", 36, 36, 1),
        ("spinnaker2-1", 152, 148, 1),
        ("spinnaker2-48", 7296, 7104, 48),
        ("hetero", 8, 8, 1),
        ("ethos-u55-16", 16, 16, 1),
    ],
)
def test_machines_have_the_elements_that_are_published(
    name: str, elements: int, usable: int, chips: int
) -> None:
    machine = find_machine(name)
    assert (machine.elements, len(machine.usable), machine.chips) == (elements, usable, chips)


def test_every_machine_is_tested_here() -> None:
    assert set(NAMES) == {
        "one", "grid4x4", "simba36", "spinnaker2-1", "spinnaker2-48", "hetero", "ethos-u55-16",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_link_has_one_that_leads_back(name: str) -> None:
    machine = find_machine(name)
    pairs = set(zip(machine.link_source.tolist(), machine.link_target.tolist(), strict=True))
    assert len(pairs) == len(machine.link_source)
    assert {(target, source) for source, target in pairs} == pairs


def test_each_chip_of_the_board_has_six_neighbours() -> None:
    machine = find_machine("spinnaker2-48")
    between = machine.link_kind == LinkKind.BETWEEN_CHIPS
    sources = machine.router_chip[machine.link_source[between]]
    assert np.bincount(sources).tolist() == [6] * 48
    assert set(machine.link_bytes_per_s[between]) == {0.5e9}
    assert set(machine.link_bytes_per_s[~between]) == {4.8e9}


def test_a_grid_of_chips_has_borders() -> None:
    text = BOARD.decode().replace('"hex-torus"', '"grid"')
    machine = parse_machine(text.encode(), "grid.toml")
    between = machine.link_kind == LinkKind.BETWEEN_CHIPS
    assert between.sum() == 2 * (7 * 6 + 8 * 5)


def test_a_torus_two_chips_wide_links_no_pair_twice() -> None:
    text = BOARD.decode().replace("columns = 8\nrows = 6", "columns = 2\nrows = 1")
    machine = parse_machine(text.replace("chip = 43", "chip = 1").encode(), "two.toml")
    assert (machine.link_kind == LinkKind.BETWEEN_CHIPS).sum() == 2


def test_names_of_elements_and_links_are_unique() -> None:
    machine = find_machine("spinnaker2-1")
    assert len({machine.element_name(index) for index in range(machine.elements)}) == 152
    assert len({machine.link_name(index) for index in range(len(machine.link_source))}) == 126
    assert machine.element_name(5) == "chip 0, router 2,0, element 1"


def _with(machine: bytes, old: str, new: str) -> bytes:
    text = machine.decode()
    assert old in text
    return text.replace(old, new).encode()


WRONG = [
    ("format = 1", "format = 2", "format", "must be 1, not 2"),
    (
        "clock_mhz = 300\ncode",
        'clock_mhz = "fast"\ncode',
        "element.pe.clock_mhz",
        "must be a number above 0 to 1e+06, not 'fast'",
    ),
    (
        "clock_mhz = 300\ncode",
        "clock_mhz = nan\ncode",
        "element.pe.clock_mhz",
        "must be a number above 0 to 1e+06, not nan",
    ),
    (
        "data_bytes = 98_304",
        "data_bytes = -1",
        "element.pe.data_bytes",
        "must be a whole number of 64..4294967296, not -1",
    ),
    (
        'overflow = "wrap"',
        'overflow = "trap"',
        "element.pe.array.overflow",
        "must be one of wrap, saturate, not 'trap'",
    ),
    ("missing = [[0, 0]", "missing = [[9, 0]", "chip.missing", "must be within 7 x 6, not [9, 0]"),
    ('element = "pe"', 'element = "ep"', "chip.element", "must be one of pe, not ep"),
    ("reserved = 4", "reserved = 152", "chip.reserved", "must be below 152, not 152"),
    (
        'arrangement = "hex-torus"',
        'arrangement = "single"',
        "board",
        "must be 1 x 1 chips where the arrangement is single, not 8 x 6",
    ),
    ("columns = 8", "columns = 200", "chip", "must be at most 65536 elements, not 182400"),
    ("chip = 43", "chip = 48", "host.chip", "must be below 48, not 48"),
    (
        "router = [0, 1]",
        "router = [0, 0]",
        "host.router",
        "must be a place with a router, not [0, 0]",
    ),
    ("[energy]", "[dead]\nchips = [48]\n[energy]", "dead.chips", "must be below 48, not 48"),
    (
        "[energy]",
        '[dead]\nelements = ["9"]\n[energy]',
        "dead.elements",
        "must be elements like 'chip 0, router 1,0, element 0', not 9",
    ),
    (
        "[energy]",
        '[dead]\nlinks = ["9"]\n[energy]',
        "dead.links",
        "must be links like 'chip 0, router 1,0 -> chip 0, router 2,0', not 9",
    ),
]


@pytest.mark.parametrize(("old", "new", "key", "said"), WRONG)
def test_errors_name_the_key(old: str, new: str, key: str, said: str) -> None:
    with pytest.raises(MizzenError) as caught:
        parse_machine(_with(BOARD, old, new), "board.toml")
    assert str(caught.value) == (
        f"error[E562]: board.toml, {key}: {said}\n"
        "  help docs/reference/mesh-machines.md has every key with its unit and range"
    )


def test_an_unknown_key_is_refused() -> None:
    content = _with(BOARD, "rows = 4\n", "rows = 4\nrows_more = 5\n")
    with pytest.raises(MizzenError) as caught:
        parse_machine(content, "board.toml")
    assert caught.value.diagnostic.message == (
        "board.toml: a key must be one of accumulator_bits, columns, depthwise_columns, overflow, "
        "rows, not element.pe.array.rows_more"
    )


BAD_NAMES = ["../../x", "/x", "a b", "-x", "$(x)", "x\x1b[2J", "*/", "", "x" * 65, ".", "\u202ex"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_machine_has_a_name_that_a_file_can_have(name: str) -> None:
    """`mizzen mesh map` writes NETWORK-MACHINE.mesh."""
    content = _with(BOARD, 'name = "spinnaker2-48"', f"name = {json.dumps(name)}")
    with pytest.raises(MizzenError, match=r"E562.* name: must (be letters|have at most)"):
        parse_machine(content, "board.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MizzenError, match=r"E561.*in TOML: No such file"):
        read_machine(tmp_path / "none.toml")
    with pytest.raises(MizzenError, match=r"E561.*x\.toml must be a machine's file in TOML"):
        parse_machine(b"\xff", "x.toml")
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(MizzenError, match=r"E561.*at most 1,048,576 bytes"):
        read_machine(large)
    with pytest.raises(MizzenError, match=r"E563[\s\S]*did you mean simba36\?"):
        find_machine("simba")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(BOARD) - 1), st.binary(max_size=3), st.integers(0, 4))
def test_mutated_files_are_refused_or_read(place: int, inserted: bytes, dropped: int) -> None:
    mutated = BOARD[:place] + inserted + BOARD[place + dropped :]
    with suppress(MizzenError):
        assert parse_machine(mutated, "board.toml").elements


def test_damage_is_what_the_seed_says() -> None:
    board = find_machine("spinnaker2-48")
    one, same, other = damaged(board, 0.01, 1), damaged(board, 0.01, 1), damaged(board, 0.01, 2)
    assert one.element_dead.sum() == 73
    assert one.link_dead.sum() == 2 * 32
    assert one.digest == same.digest != other.digest
    assert all((target, source) in one.links_of for source, target in one.links_of)


def test_a_dead_chip_has_no_element_and_no_link() -> None:
    machine = without_chip(find_machine("spinnaker2-48"), 7)
    assert 7 not in machine.element_chip[machine.usable]
    ends = {machine.router_chip[router] for pair in machine.links_of for router in pair}
    assert 7 not in ends


def test_what_work_costs() -> None:
    """16 pixels are four rows of four, 20 channels two columns of 16: 8 steps of 27 products."""
    element = find_machine("spinnaker2-1").kinds[0]
    work = Work(WorkKind.CONVOLUTION, pixels=16, channels=20, taps=27)
    assert cycles(element, work) == 4 * 2 * 27
    added = Work(WorkKind.CONVOLUTION, pixels=16, channels=20, taps=27, operands=1, partials=2)
    assert cycles(element, added) == 4 * 2 * 27 + 320 * (0.5 + 2)
    depthwise = Work(WorkKind.DEPTHWISE, pixels=5, channels=3, taps=9)
    assert cycles(element, depthwise) == 2 * 3 * 9
    assert cycles(element, Work(WorkKind.POINTWISE, 3, 1)) == 2
    core = find_machine("hetero").kinds[0]
    assert cycles(core, Work(WorkKind.CONVOLUTION, 2, 2, 10)) == 200 + 20
