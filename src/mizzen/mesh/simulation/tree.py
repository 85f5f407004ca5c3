"""A route as a tree: its links so that each comes after the one that leads to it."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.program.program import Route


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a route.

    links    link, source router, target router, from the root outwards
    targets  router and the elements at it that the message is for
    """

    root: int
    links: tuple[tuple[int, int, int], ...]
    targets: tuple[tuple[int, tuple[int, ...]], ...]


def tree_of(machine: Machine, route: Route) -> Tree:
    """Return a route's tree. Links that the root does not reach are left out."""
    root = int(machine.element_router[route.source])
    leaving: dict[int, list[tuple[int, int, int]]] = {}
    for link in route.links:
        source, target = int(machine.link_source[link]), int(machine.link_target[link])
        leaving.setdefault(source, []).append((link, source, target))
    order: list[tuple[int, int, int]] = []
    pending = [root]
    while pending:
        links = leaving.pop(pending.pop(), [])
        order += links
        pending += [target for _, _, target in links]
    at: dict[int, list[int]] = {}
    for element in route.targets:
        at.setdefault(int(machine.element_router[element]), []).append(element)
    targets = tuple((router, tuple(elements)) for router, elements in at.items())
    return Tree(root, tuple(order), targets)
