"""Events over bursts: a message takes each link of its tree for its size over the link's rate."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.mesh.program.program import MeshProgram
from mizzen.mesh.simulation.events import Events, Simulated
from mizzen.mesh.simulation.tree import Tree, tree_of


def simulate(program: MeshProgram, images: int = 8, keeps_activities: bool = False) -> Simulated:
    """Run a program for some images of each replica, its messages as bursts.

    Of bursts that want a link, the one that was injected first goes first; its head goes on to the
    next link after the link's latency, so that links work at once. RuntimeError if elements wait
    for each other forever, which a checked program's do not.
    """
    events = Events(program, images, keeps_activities)
    return events.run(_Bursts(events))


@dataclass(slots=True)
class _Resource:
    """A resource in the order of a tree: its rate, and when it is free."""

    bytes_per_s: float
    latency_s: float
    free_s: float = 0.0


class _Bursts:
    """Links and ports, each with the time at which it is free again."""

    def __init__(self, events: Events) -> None:
        self.events = events
        machine = events.program.machine
        self.links = [
            _Resource(float(rate), float(latency))
            for rate, latency in zip(machine.link_bytes_per_s, machine.link_latency_s, strict=True)
        ]
        routers = range(len(machine.router_chip))
        self.into = [_Resource(machine.port_bytes_per_s, 0.0) for _ in routers]
        self.out_of = [_Resource(machine.port_bytes_per_s, 0.0) for _ in routers]
        self.trees: dict[int, Tree] = {}

    def inject(self, message: int, image: int) -> None:
        """Reserve the links of a message's tree, and say when it leaves and arrives."""
        program, clock = self.events.program, self.events.clock
        route = program.routes[message]
        tree = self.trees.get(message)
        if tree is None:
            tree = self.trees[message] = tree_of(program.machine, route)
        size = route.size_bytes
        head, tail = self._pass(self.into[tree.root], clock.now, clock.now, size)
        heads = {tree.root: (head, tail)}
        clock.at(tail, lambda: self.events.left(message))
        for link, source, target in tree.links:
            heads[target] = self._pass(self.links[link], *heads[source], size)
        for router, elements in tree.targets:
            _, done = self._pass(self.out_of[router], *heads[router], size)
            for element in elements:
                clock.at(done, lambda element=element: self.events.arrived(message, element))

    @staticmethod
    def _pass(way: _Resource, head: float, tail: float, size: int) -> tuple[float, float]:
        """Return when the head and the tail of a burst are past a link that it takes.

        The packets of a burst that comes slowly leave room for others between them: the link is
        taken for the burst's size alone.
        """
        start = max(head, way.free_s)
        way.free_s = start + size / way.bytes_per_s
        stop = max(way.free_s, tail)
        return start + way.latency_s, stop + way.latency_s
