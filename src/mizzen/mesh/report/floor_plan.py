"""The machine as a map: routers with their elements, links between them, each with its load."""

from __future__ import annotations

from mizzen.mesh.machine.machine import Arrangement, LinkKind, Machine
from mizzen.mesh.program.program import MeshProgram
from mizzen.mesh.simulation import Estimate
from mizzen.report.page import Line, Map, Node

SIDE = 0.55
"""Of a router's square, whose neighbours are 1 away."""

CHIP_GAP = 1.5
HEX_SHIFT = 0.5
"""How far each row of a hexagonal arrangement lies beside the one before, in chips."""


def floor_plan(program: MeshProgram, estimate: Estimate) -> Map:
    """Return the map of a machine; a router is as busy as the busiest of its elements."""
    machine = program.machine
    places = _places(machine)
    nodes = tuple(_nodes(machine, estimate, places))
    lines = tuple(_lines(machine, estimate, places))
    return Map(
        "Loads of elements and links",
        "A square is a router and as busy as its busiest element; a line is a link, shifted to the "
        "right of its direction. Empty squares have no element that takes programs.",
        nodes,
        lines,
    )


def _places(machine: Machine) -> list[tuple[float, float]]:
    """Return the upper left corner of each router's square."""
    width = float(machine.router_x.max()) + CHIP_GAP + 1
    height = float(machine.router_y.max()) + CHIP_GAP + 1
    shift = HEX_SHIFT * width if machine.arrangement is Arrangement.HEX_TORUS else 0.0
    return [
        (
            float(machine.chip_x[chip]) * width - float(machine.chip_y[chip]) * shift + float(x),
            -float(machine.chip_y[chip]) * height - float(y),
        )
        for chip, x, y in zip(
            machine.router_chip.tolist(), machine.router_x, machine.router_y, strict=True
        )
    ]


def _nodes(machine: Machine, estimate: Estimate, places: list[tuple[float, float]]) -> list[Node]:
    busiest: dict[int, float] = {}
    for element in machine.usable.tolist():
        router = int(machine.element_router[element])
        busy = float(estimate.element_s[element]) / estimate.period_s
        busiest[router] = max(busiest.get(router, 0.0), busy)
    return [
        Node(x, y, SIDE, SIDE, busiest.get(router), _title(machine, router, busiest.get(router)))
        for router, (x, y) in enumerate(places)
    ]


def _title(machine: Machine, router: int, share: float | None) -> str:
    name = machine.router_name(router)
    return f"{name}: no element" if share is None else f"{name}: {100 * share:.1f} %"


def _lines(machine: Machine, estimate: Estimate, places: list[tuple[float, float]]) -> list[Line]:
    lines: list[Line] = []
    for link in range(len(machine.link_source)):
        if machine.link_dead[link]:
            continue
        share = float(estimate.link_s[link]) / estimate.period_s
        ends = (
            _middle(places[int(machine.link_source[link])]),
            _middle(places[int(machine.link_target[link])]),
        )
        if machine.link_kind[link] == LinkKind.BETWEEN_CHIPS and _wraps(machine, link):
            ends = ends[0], _stub(*ends)
        (x, y), (to_x, to_y) = _beside(*ends)
        title = f"{machine.link_name(link)}: {100 * share:.1f} %"
        lines.append(Line(x, y, to_x, to_y, share, title))
    return lines


def _middle(place: tuple[float, float]) -> tuple[float, float]:
    return place[0] + SIDE / 2, place[1] + SIDE / 2


def _wraps(machine: Machine, link: int) -> bool:
    """Whether a link leads around the torus."""
    source, target = (
        int(machine.router_chip[router])
        for router in (machine.link_source[link], machine.link_target[link])
    )
    apart_x = abs(int(machine.chip_x[source]) - int(machine.chip_x[target]))
    apart_y = abs(int(machine.chip_y[source]) - int(machine.chip_y[target]))
    return apart_x > 1 or apart_y > 1


def _stub(start: tuple[float, float], stop: tuple[float, float]) -> tuple[float, float]:
    """Return the end of a short line away from where a link around the torus leads."""
    x, y = start[0] - stop[0], start[1] - stop[1]
    length = max((x * x + y * y) ** 0.5, 1e-9)
    return start[0] + x / length, start[1] + y / length


def _beside(
    start: tuple[float, float], stop: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return a line's ends, shifted to its right, so that the way back is beside it."""
    x, y = stop[0] - start[0], stop[1] - start[1]
    length = max((x * x + y * y) ** 0.5, 1e-9)
    aside = -y / length * SIDE / 5, x / length * SIDE / 5
    return (start[0] + aside[0], start[1] + aside[1]), (stop[0] + aside[0], stop[1] + aside[1])
