"""Networks mapped onto machines: no findings, memories kept, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.mesh.emission import emit
from mizzen.mesh.machine import Machine, damaged, find_machine, without, without_chip
from mizzen.mesh.mapping import (
    Mapping,
    MappingOptions,
    Multicast,
    Placement,
    Solver,
    SumSplit,
    element_bytes,
    map_network,
)
from mizzen.mesh.mapping.plain import link_seconds
from mizzen.mesh.network import Network
from mizzen.mesh.network.shapes import mobilenet_v1, mobilenet_v2, resnet18, resnet50
from mizzen.mesh.network.shapes import transformer_block as transformer
from mizzen.mesh.program.checker import check
from mizzen.mesh.simulation import array_bound, estimate, simulate

from .networks import small_network

BOARD = "spinnaker2-48"


def _assert_holds(mapping: Mapping) -> None:
    assert check(emit(mapping)) == ()
    for element in mapping.tiles_of_element:
        assert element_bytes(mapping, element) <= mapping.machine.kind_of(element).data_bytes


@pytest.mark.parametrize(
    ("network", "machine"),
    [
        (small_network, "one"),
        (small_network, "grid4x4"),
        (small_network, "hetero"),
        (small_network, "spinnaker2-1"),
        (resnet18, "simba36"),
        (mobilenet_v1, "simba36"),
        (mobilenet_v2, "simba36"),
        (transformer, "simba36"),
        (transformer, "ethos-u55-16"),
    ],
)
def test_mapped_networks_have_no_findings(network: Callable[[], Network], machine: str) -> None:
    mapping = map_network(network(), find_machine(machine))
    _assert_holds(mapping)
    simulated = simulate(emit(mapping), 8).images_per_s
    assert simulated >= 0.4 * estimate(emit(mapping)).images_per_s


@pytest.mark.parametrize("seed", range(4))
def test_damaged_machines_are_mapped_around(seed: int) -> None:
    machine = damaged(find_machine("simba36"), 0.05, seed)
    mapping = map_network(resnet18(), machine)
    _assert_holds(mapping)
    assert not machine.link_dead[[link for row in mapping.messages for link in row.links]].any()


def test_same_options_give_the_same_mapping() -> None:
    machine = find_machine("simba36")
    options = MappingOptions(seed=5)
    one, other = (map_network(mobilenet_v1(), machine, options) for _ in range(2))
    assert one.tiles == other.tiles
    assert one.messages == other.messages
    assert one.slots == other.slots


def test_hard_capacity_decides_how_many_replicas() -> None:
    machine = find_machine("spinnaker2-1")
    few = map_network(small_network(), machine, MappingOptions(replicas=1))
    assert few.replicas == 1
    many = map_network(small_network(), machine)
    assert many.replicas > 1
    bound = array_bound(few.network, machine)
    assert estimate(emit(few)).images_per_s < estimate(emit(many)).images_per_s <= bound


def test_no_multicast_sends_each_target_its_own() -> None:
    machine = find_machine("simba36")
    options = MappingOptions(multicast=Multicast.NONE, replicas=1)
    mapping = map_network(mobilenet_v1(), machine, options)
    assert all(len(message.targets) == 1 for message in mapping.messages)
    _assert_holds(mapping)


def test_sums_are_split_unless_that_is_ruled_out() -> None:
    kind = find_machine("spinnaker2-1").kinds[0]
    tight = replace(kind, data_bytes=30_000)
    machine = replace(find_machine("spinnaker2-1"), kinds=(tight,))
    network = small_network(8, 256)
    mapping = map_network(network, machine, MappingOptions(replicas=1))
    assert any(tile.sums_into is not None for tile in mapping.tiles)
    _assert_holds(mapping)
    with pytest.raises(MizzenError) as caught:
        map_network(network, machine, MappingOptions(replicas=1, sum_split=SumSplit.NONE))
    assert "error[E510]" in str(caught.value)


def test_faster_elements_get_more_work() -> None:
    machine = find_machine("hetero")
    mapping = map_network(small_network(), machine)
    busy = estimate(emit(mapping)).images_per_s
    slow = without_kinds(machine, {"fast", "large"})
    assert busy > 1.5 * estimate(emit(map_network(small_network(), slow))).images_per_s


def without_kinds(machine: Machine, names: set[str]) -> Machine:
    """Return a machine whose elements of some kinds are dead."""
    kinds = [at for at, kind in enumerate(machine.kinds) if kind.name in names]
    return replace(machine, element_dead=np.isin(machine.element_kind, kinds))


def test_too_large_network_says_by_how_much() -> None:
    with pytest.raises(MizzenError) as caught:
        map_network(resnet50(), find_machine("spinnaker2-1"))
    assert str(caught.value) == (
        "error[E510]: resnet50 must fit the 14,548,992 bytes of data memory of the 148 elements of"
        " spinnaker2-1, but needs at least 126,389,472, 111,840,480 too many; layer convolution 46"
        " has the most, 12,296,192\n"
        "  help take more than 1286 such elements, or a smaller network"
    )


def test_too_large_layer_says_by_how_much() -> None:
    with pytest.raises(MizzenError) as caught:
        map_network(transformer(tokens=256, width=256), find_machine("grid4x4"))
    assert str(caught.value) == (
        "error[E510]: the smallest tile of layer general 3 must fit the 98,304 bytes of data memory"
        " of an element of grid4x4, but has 163,840, 65,536 too many, when it is split into 1\n"
        "  help take elements with 163,840 bytes, or a network with a smaller layer"
    )


def test_cut_off_elements_are_named() -> None:
    grid = find_machine("grid4x4")
    ends = grid.link_source == 5, grid.link_target == 5
    machine = without(grid, links=np.flatnonzero(ends[0] | ends[1]).tolist())
    with pytest.raises(MizzenError) as caught:
        map_network(small_network(), machine, MappingOptions(replicas=1))
    assert str(caught.value) == (
        "error[E518]: chip 0, router 1,0 must reach chip 0, router 1,1 over live links, but does"
        " not\n  help declare the elements of what is cut off dead"
    )


def test_solvers_agree_and_the_gap_is_told() -> None:
    machine = find_machine("spinnaker2-1")
    told: list[str] = []
    network = small_network()
    mappings = [
        map_network(network, machine, MappingOptions(replicas=1, solver=solver), told.append)
        for solver in Solver
    ]
    assert "CP-SAT: at most 0.00% above the least traffic" in told
    sizes = [sum(row.size_bytes * len(row.targets) for row in it.messages) for it in mappings]
    assert sizes[0] == sizes[1]


@pytest.mark.sweep
def test_lost_chip_costs_the_replica_on_it() -> None:
    machine = without_chip(find_machine(BOARD), 0)
    mapping = map_network(mobilenet_v2(), machine, MappingOptions(replicas=8))
    assert mapping.replicas == 7
    _assert_holds(mapping)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("network", "replicas", "least"), [(mobilenet_v2, 8, 0.75), (resnet50, 2, 0.55)]
)
def test_board_is_used_well(network: Callable[[], Network], replicas: int, least: float) -> None:
    machine = find_machine(BOARD)
    mapping = map_network(network(), machine, MappingOptions(replicas=replicas))
    _assert_holds(mapping)
    rate = simulate(emit(mapping), 10).images_per_s
    assert rate >= least * array_bound(mapping.network, machine)


@pytest.mark.sweep
def test_searched_placement_loads_links_less_than_plain_ones() -> None:
    machine = find_machine(BOARD)

    def busiest(placement: Placement, seed: int = 0) -> float:
        options = MappingOptions(replicas=8, placement=placement, seed=seed)
        return float(link_seconds(map_network(mobilenet_v2(), machine, options)).max())

    plain = [busiest(Placement.HILBERT)]
    plain += [busiest(Placement.RANDOM, seed) for seed in range(3)]
    assert busiest(Placement.SEARCHED) <= 0.8 * min(plain)


@pytest.mark.sweep
def test_damaged_board_is_mapped_around() -> None:
    machine = damaged(find_machine(BOARD), 0.01, 7)
    _assert_holds(map_network(mobilenet_v2(), machine, MappingOptions(replicas=8)))
