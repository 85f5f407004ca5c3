"""Simulations agree with each other within their bounds, and with what is worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from mizzen.mesh.machine import find_machine
from mizzen.mesh.network import Network
from mizzen.mesh.network.network import Tensor
from mizzen.mesh.network.shapes import resnet50
from mizzen.mesh.program import (
    Compute,
    ElementProgram,
    Fetch,
    Give,
    Kernel,
    MeshProgram,
    Receive,
    Region,
    RegionKind,
    Route,
    Send,
)
from mizzen.mesh.simulation import (
    Estimate,
    Resource,
    Simulated,
    array_bound,
    estimate,
    host_bound,
    simulate,
    simulate_flits,
)

from .pipelines import NO_BOX, WORK, random_pipeline, straight

SEEDS = range(60)


IMAGES = 8


@dataclass
class Case:
    """What the three say of a program: the estimate, by bursts, by flits."""

    analytic: Estimate
    bursts: Simulated
    flits: Simulated

    @property
    def is_bound_by_network(self) -> bool:
        return self.analytic.bottleneck.resource is not Resource.ELEMENT


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    programs = [random_pipeline(seed) for seed in SEEDS]
    return [
        Case(estimate(program), simulate(program, IMAGES), simulate_flits(program, IMAGES))
        for program in programs
    ]


def errors(cases: list[Case], of: Callable[[Case], float]) -> list[float]:
    return [abs(of(case) / case.flits.images_per_s - 1) for case in cases]


def test_most_cases_are_bound_by_the_network(cases: list[Case]) -> None:
    assert sum(case.is_bound_by_network for case in cases) > len(cases) // 2


def test_events_are_within_a_tenth_of_flits(cases: list[Case]) -> None:
    bound = [case for case in cases if case.is_bound_by_network]
    assert np.median(errors(cases, lambda case: case.bursts.images_per_s)) <= 0.1
    assert np.median(errors(bound, lambda case: case.bursts.images_per_s)) <= 0.1


def test_the_analytic_estimate_is_within_a_fifth_of_flits(cases: list[Case]) -> None:
    bound = [case for case in cases if case.is_bound_by_network]
    assert np.median(errors(cases, lambda case: case.analytic.images_per_s)) <= 0.2
    assert np.median(errors(bound, lambda case: case.analytic.images_per_s)) <= 0.2


def test_nothing_is_faster_than_its_busiest_resource(cases: list[Case]) -> None:
    for case in cases:
        least = IMAGES * case.analytic.period_s * (1 - 1e-9)
        assert case.bursts.finished_s[0, -1] >= least
        assert case.flits.finished_s[0, -1] >= least


def test_latencies_of_events_are_those_of_flits(cases: list[Case]) -> None:
    ratios = [abs(case.bursts.latency_s / case.flits.latency_s - 1) for case in cases]
    assert np.median(ratios) <= 0.1


def pair(cycles: int, size: int, slots: int = 2) -> MeshProgram:
    """Return two elements at a distance of two links; the first sends what it computes."""
    machine = find_machine("grid4x4")
    box = ((0, size),)
    kernel = Kernel(0, NO_BOX, None, 0, False)
    regions = (
        Region(RegionKind.INPUT, 0, size, slots, 0, box),
        Region(RegionKind.OUTPUT, 2 * size, size, 2, 0, box),
    )
    compute = Compute(kernel, (0,), (), None, 1, WORK, cycles)
    first = ElementProgram(0, 0, regions, (Fetch(0, 0), compute, Send(0, 1, box)))
    last = ElementProgram(2, 0, regions, (Receive(0, 0, box), compute, Give(0, 1, box)))
    route = Route(0, (2,), tuple(straight(machine, 0, 2)), size)
    network = Network("pair", (Tensor("x", (1,), 1),), (), (0,), (0,))
    return MeshProgram(machine, network, 1, (first, last), (route,))


def test_a_pipeline_bound_by_compute() -> None:
    """300 cycles at 300 MHz are 1 us; 160 bytes at 16 a cycle are 10 cycles behind 2 x 5."""
    program = pair(300, 160)
    found = estimate(program)
    assert found.images_per_s == pytest.approx(1e6)
    assert found.bottleneck.resource is Resource.ELEMENT
    assert found.latency_s == pytest.approx((300 + 20 + 300) / 300e6)
    simulated = simulate(program, 8)
    assert simulated.images_per_s == pytest.approx(1e6)
    assert simulated.latency_s == pytest.approx(620 / 300e6)
    flits = simulate_flits(program, 8)
    assert flits.images_per_s == pytest.approx(1e6)
    assert flits.latency_s == pytest.approx(620 / 300e6, rel=0.01)


def test_a_pipeline_bound_by_a_link() -> None:
    """16,000 bytes need 1,000 cycles, ten times what is computed."""
    program = pair(100, 16_000)
    found = estimate(program)
    assert found.images_per_s == pytest.approx(300e3)
    assert found.bottleneck.resource is not Resource.ELEMENT
    assert simulate(program, 8).images_per_s == pytest.approx(300e3, rel=0.02)
    assert simulate_flits(program, 8).images_per_s == pytest.approx(300e3, rel=0.02)


def test_one_slot_makes_sender_and_receiver_wait_for_each_other() -> None:
    """The next message leaves when the last has been used: 1,000 + 300 + 20 cycles."""
    program = pair(300, 16_000, slots=1)
    expected = 300e6 / (1000 + 10 + 300)
    assert simulate(program, 8).images_per_s == pytest.approx(expected, rel=0.01)
    assert simulate_flits(program, 8).images_per_s == pytest.approx(expected, rel=0.01)


def test_energy_is_counted_by_hand() -> None:
    """160 bytes: into, two links and out of the network; each memory 320 twice and 160 twice."""
    program = pair(300, 160)
    rates = program.machine.energy
    network = 160 * 4 * rates.router_byte_pj
    memory = (2 * 320 + 4 * 160) * rates.memory_byte_pj
    assert estimate(program).energy_j == pytest.approx(
        (network + memory) * 1e-12 + rates.idle_w / 1e6
    )


def test_elements_that_wait_forever_are_told() -> None:
    program = pair(300, 160)
    last = program.elements[1]
    stuck = MeshProgram(program.machine, program.network, 1, (last,), program.routes)
    with pytest.raises(RuntimeError, match="1 elements wait forever, the first is chip 0"):
        simulate(stuck, 1)


def test_bounds_of_the_board() -> None:
    board = find_machine("spinnaker2-48")
    assert round(array_bound(resnet50(), board)) == 31_608
    host = host_bound(resnet50(), board)
    assert host is not None
    assert round(host) == 830
    assert host_bound(resnet50(), find_machine("one")) is None
