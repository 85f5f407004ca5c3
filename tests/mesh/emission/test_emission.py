"""What emission decides: addresses, slots, the order of instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.mesh.emission import emit
from mizzen.mesh.mapping import Mapping, element_bytes
from mizzen.mesh.program import Compute, Copy, Fetch, Give, Receive, RegionKind, Send

Made = dict[str, Callable[[], Mapping]]


def test_an_element_needs_the_bytes_that_its_mapping_counts(hand_mapping: Mapping) -> None:
    for row in emit(hand_mapping).elements:
        wanted = element_bytes(hand_mapping, row.element)
        assert 0 <= wanted - row.data_bytes < 16
        assert all(region.address % 16 == 0 for region in row.regions)


def test_an_element_fetches_computes_and_sends(by_hand: Made) -> None:
    first, *_, last = emit(by_hand["split_channels"]()).elements
    assert [type(row) for row in first.instructions] == [Fetch, Compute, Send]
    assert [type(row) for row in last.instructions] == [Receive, Receive, Receive, Compute, Give]
    slots = {region.kind: region.slots for region in first.regions}
    assert slots == {RegionKind.CONSTANTS: 1, RegionKind.INPUT: 1, RegionKind.OUTPUT: 2}
    assert [region.slots for region in last.regions] == [1, 2, 1]


def test_sums_are_given_before_others_are_waited_for(by_hand: Made) -> None:
    for row in emit(by_hand["several_tiles_an_element"]()).elements:
        kernels = [each.kernel for each in row.instructions if isinstance(each, Compute)]
        assert [kernel.gives_sums for kernel in kernels[:3]] == [False, True, False]
        assert any(isinstance(each, Copy) for each in row.instructions)


def test_slots_are_those_of_the_mapping(by_hand: Made) -> None:
    mapping = replace(by_hand["split_channels"](), slots={(3, 1): 5, (0, 1): 3})
    rows = {row.element: row for row in emit(mapping).elements}
    assert rows[5].regions[1].slots == 5
    assert rows[0].regions[2].slots == 3


def test_an_element_of_two_replicas_is_refused(by_hand: Made) -> None:
    mapping = by_hand["replicas"]()
    tiles = tuple(replace(tile, element=tile.element % 4) for tile in mapping.tiles)
    moved = tuple(replace(tile, element=0) for tile in tiles[:4]) + tiles[4:]
    with pytest.raises(MizzenError) as error:
        emit(replace(mapping, tiles=moved))
    assert str(error.value) == (
        "error[E530]: chip 0, router 0,0, element 0 must have tiles of one replica, not of "
        "replicas 0, 1"
    )
