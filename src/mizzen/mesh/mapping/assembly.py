"""All replicas of a template, on elements, as one mapping."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.chip_net import ChipNet, Demand, Step, TreeRouter
from mizzen.mesh.mapping.mapping import Mapping, Message, Tile
from mizzen.mesh.mapping.routes import Routes
from mizzen.mesh.mapping.template import Slots, Template, on_elements

Tree = tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Placed:
    """One replica on a machine.

    elements  the element of each seat
    trees     the links between chips of each flow that leaves its chip
    """

    template: Template
    elements: list[int]
    trees: dict[int, Tree]


def assembled(machine: Machine, net: ChipNet, placed: list[Placed], seed: int) -> Mapping:
    """Return the mapping of all replicas."""
    routes = Routes(machine, net)
    tiles: list[Tile] = []
    messages: list[Message] = []
    slots: Slots = {}
    for replica, own in enumerate(placed):
        first = len(tiles)
        tiles += on_elements(own.template, own.elements, replica, first)
        for (tile, tensor), count in own.template.slots.items():
            slots[tile + first, tensor] = count
        messages += _messages(machine, routes, own, first)
    network = placed[0].template.network
    return Mapping(machine, network, len(placed), tuple(tiles), tuple(messages), slots, seed)


def _messages(machine: Machine, routes: Routes, placed: Placed, first: int) -> list[Message]:
    template = placed.template
    routers = machine.element_router[placed.elements].tolist()
    at = [routers[tile.element] for tile in template.tiles]
    messages: list[Message] = []
    for index, flow in enumerate(template.flows):
        targets = [at[target] for target in flow.targets]
        links = routes.links(at[flow.source], targets, placed.trees.get(index, ()))
        moved = tuple(target + first for target in flow.targets)
        source = flow.source + first
        messages.append(Message(source, moved, flow.tensor, flow.box, flow.size_bytes, links))
    return messages


def around_dead(
    net: ChipNet, demands: list[list[Demand]], trees: list[list[Tree]]
) -> list[list[Tree]]:
    """Route again what went over dead links between chips, demand for demand of each replica."""
    dead = set(net.machine.link_dead.nonzero()[0].tolist())
    closed = {link for link in net.link_at.values() if link in dead}
    if not closed:
        return trees
    router = TreeRouter(net, list(range(len(net.neighbours))), closed)
    again: list[tuple[int, int]] = []
    rerouted = [list(of_replica) for of_replica in trees]
    for replica, of_replica in enumerate(trees):
        for at, tree in enumerate(of_replica):
            if any(net.link_at[step] in closed for step in tree):
                again.append((replica, at))
            else:
                router.add(tree, demands[replica][at].size_bytes)
    for replica, at in again:
        demand = demands[replica][at]
        rerouted[replica][at] = router.tree(demand.source, demand.targets)
        router.add(rerouted[replica][at], demand.size_bytes)
    return rerouted
