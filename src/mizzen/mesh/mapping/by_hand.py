"""Layers that a person puts on elements; what is left over is searched for.

Each assignment is a run of layers on some elements of one kind, which share each of its layers
between them; how it is split may be said too. Layers without an assignment get the other elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.diagnostics import MizzenError, did_you_mean, fail
from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.depths import Buffering
from mizzen.mesh.mapping.given import mapping_of
from mizzen.mesh.mapping.mapping import Mapping, Tile
from mizzen.mesh.mapping.misfit import does_not_fit
from mizzen.mesh.mapping.options import SumSplit
from mizzen.mesh.mapping.sharing import SharedStages
from mizzen.mesh.mapping.stages import Problem, Stage, bisect, problem_of
from mizzen.mesh.mapping.template import layer_tiles
from mizzen.mesh.network.network import Network


@dataclass(frozen=True, slots=True)
class Assignment:
    """Layers, by index and next to each other, on elements; `place` is where that was said."""

    layers: tuple[int, ...]
    elements: tuple[int, ...]
    place: str


MOST_ELEMENTS = 256
"""Elements that layers without an assignment are spread over at most."""


def layer_index(network: Network, name: str | int, place: str) -> int:
    """Return the index of a layer by name or index. E516 if there is none."""
    names = [layer.name for layer in network.layers]
    if isinstance(name, int):
        if 0 <= name < len(names):
            return name
        raise _wrong(place, f"a layer in 0..{len(names) - 1}", name, None)
    if name not in names:
        meant = did_you_mean(name, names)
        raise _wrong(place, f"a layer of {network.name}", repr(name), meant)
    return names.index(name)


def checked(network: Network, machine: Machine, assignments: list[Assignment]) -> None:
    """Hold assignments to a network and a machine. E516 for what cannot be."""
    layers: dict[int, str] = {}
    elements: dict[int, str] = {}
    usable = set(machine.usable.tolist())
    for assignment in assignments:
        for layer in assignment.layers:
            if layer in layers:
                must = f"layers that {layers[layer]} does not have"
                raise _wrong(f"{assignment.place}.layers", must, network.layers[layer].name, None)
            layers[layer] = assignment.place
        if assignment.layers != tuple(
            range(assignment.layers[0], assignment.layers[0] + len(assignment.layers))
        ):
            raise _wrong(
                f"{assignment.place}.layers",
                "layers that follow each other",
                assignment.layers,
                None,
            )
        for at, element in enumerate(assignment.elements):
            where = f"{assignment.place}.elements[{at}]"
            _check_element(machine, usable, element, where)
            if element in elements:
                must = f"an element that {elements[element]} does not have"
                raise _wrong(where, must, element, None)
            elements[element] = assignment.place
        kinds = {machine.kind_of(element).name for element in assignment.elements}
        if len(kinds) > 1:
            must = "elements of one kind, so that tiles are equal"
            raise _wrong(f"{assignment.place}.elements", must, ", ".join(sorted(kinds)), None)


def _check_element(machine: Machine, usable: set[int], element: int, where: str) -> None:
    if not 0 <= element < machine.elements:
        raise _wrong(where, f"an element in 0..{machine.elements - 1}", element, None)
    if element not in usable:
        state = "dead" if machine.element_dead[element] else "kept for management"
        raise _wrong(where, "an element that takes programs", f"{element}, which is {state}", None)


def _wrong(place: str, must: str, came: object, help: str | None) -> MizzenError:
    return fail("E516", f"{place} must be {must}, not {came}", help=help)


def map_by_hand(network: Network, machine: Machine, assignments: list[Assignment]) -> Mapping:
    """Return the mapping of one replica with some layers, or all, on given elements.

    E516 for assignments that cannot be, E517 where an element's memory is too small, E510 where
    the other layers do not fit the other elements.
    """
    checked(network, machine, assignments)
    taken = {element for each in assignments for element in each.elements}
    left = [element for element in machine.usable.tolist() if element not in taken]
    given = {layer: each for each in assignments for layer in each.layers}
    free = [layer for layer in range(len(network.layers)) if layer not in given]
    tiles: list[Tile] = []
    first = 0
    while first < len(network.layers):
        assignment = given.get(first)
        last = first + len(assignment.layers) if assignment else _until_given(first, given, network)
        part = replace(network, layers=network.layers[first:last])
        if assignment:
            stage = _on_given(part, machine, assignment)
            _add(tiles, network, first, stage, list(assignment.elements))
        else:
            share = left[: max(1, len(left) * (last - first) // len(free))]
            left = left[len(share) :] + _add_searched(tiles, network, machine, part, first, share)
            free = [layer for layer in free if layer >= last]
        first = last
    return mapping_of(machine, network, [tiles])


def _until_given(first: int, given: dict[int, Assignment], network: Network) -> int:
    return min((layer for layer in given if layer > first), default=len(network.layers))


def _problem(part: Network, machine: Machine, elements: Sequence[int]) -> Problem:
    counts = np.bincount(machine.element_kind[list(elements)], minlength=len(machine.kinds))
    each = tuple(min(MOST_ELEMENTS, count) for count in counts.tolist())
    return problem_of(part, machine, each, Buffering.SINGLE, SumSplit.ALLOWED)


def _on_given(part: Network, machine: Machine, assignment: Assignment) -> Stage:
    """Return the layers of an assignment on all its elements, whether they fit or not."""
    kind = int(machine.element_kind[assignment.elements[0]])
    table = SharedStages(_problem(part, machine, assignment.elements))
    return table.stage((kind, 0, len(part.layers)), min(MOST_ELEMENTS, len(assignment.elements)))


def _add_searched(
    tiles: list[Tile],
    network: Network,
    machine: Machine,
    part: Network,
    first: int,
    share: list[int],
) -> list[int]:
    """Add the tiles of layers without an assignment; return the elements that are left."""
    if not share:
        raise _wrong(
            "assign", "such that elements are left for all other layers", "all taken", None
        )
    problem = _problem(part, machine, share)
    table = SharedStages(problem)
    stages = bisect(table.stages, table.least(), table.most()) if problem.may_fit else None
    if stages is None:
        raise does_not_fit(part, machine, problem, share)
    for stage in stages.stages:
        of_kind = [at for at in share if int(machine.element_kind[at]) == stage.kind]
        chosen = of_kind[: stage.elements]
        share = [element for element in share if element not in set(chosen)]
        _add(tiles, network, first, stage, chosen)
    return share


def _add(
    tiles: list[Tile], network: Network, first: int, stage: Stage, elements: list[int]
) -> None:
    layers = range(first + stage.first, first + stage.last)
    for layer, split in zip(layers, stage.splits, strict=True):
        own = layer_tiles(network, layer, split, 0, stage.elements, len(tiles))
        tiles += [replace(tile, element=elements[tile.element]) for tile in own]
