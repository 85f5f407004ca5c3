"""The reference: every flit on every link, packets of one message between those of others.

Virtual cut-through: a packet holds a link until its last flit, and goes on as soon as its first is
there; links choose in turn among those from whom packets wait; buffers are deep enough. For meshes
of some ten elements.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from mizzen.mesh.program.program import MeshProgram
from mizzen.mesh.simulation.events import Events, Simulated
from mizzen.mesh.simulation.tree import Tree, tree_of

FLIT_BYTES = 16
"""Payload of a flit: 128 bits, as in SpiNNaker2's network on chip (arXiv:2103.08392)."""

PACKET_FLITS = 8
"""Flits of a packet."""


def simulate_flits(
    program: MeshProgram, images: int = 8, keeps_activities: bool = False
) -> Simulated:
    """Run a program for some images of each replica, every flit on its own."""
    events = Events(program, images, keeps_activities)
    return events.run(_Flits(events))


@dataclass(eq=False, slots=True)
class _Packet:
    """Flits of a message; `left` are those that have not passed the way that it is at."""

    message: int
    flits: int
    is_last: bool
    there: int = 0
    passed: int = 0


@dataclass(eq=False, slots=True)
class _PacketQueue:
    """A link or port, and the packets that wait for it, by where they come from."""

    flit_s: float
    latency_s: float
    waiting: dict[object, deque[_Packet]] = field(default_factory=dict[object, deque[_Packet]])
    current: _Packet | None = None
    is_busy: bool = False

    def choose(self) -> _Packet | None:
        """Return the packet that the way passes on, the next in turn where the last is through."""
        if self.current is None:
            for source in list(self.waiting):
                packets = self.waiting.pop(source)
                if packets:
                    self.current = packets.popleft()
                    self.waiting[source] = packets
                    break
        return self.current


class _Flits:
    """Links and ports with packets that wait for them."""

    def __init__(self, events: Events) -> None:
        self.events = events
        machine = events.program.machine
        self.links = [
            _PacketQueue(FLIT_BYTES / float(rate), float(latency))
            for rate, latency in zip(machine.link_bytes_per_s, machine.link_latency_s, strict=True)
        ]
        flit_s = FLIT_BYTES / machine.port_bytes_per_s
        self.into = [_PacketQueue(flit_s, 0.0) for _ in machine.router_chip]
        self.out_of = [_PacketQueue(flit_s, 0.0) for _ in machine.router_chip]
        self.trees: dict[int, Tree] = {}
        self.next: dict[int, dict[_PacketQueue, list[_PacketQueue]]] = {}
        self.elements: dict[tuple[int, _PacketQueue], tuple[int, ...]] = {}
        self.copies: dict[tuple[_PacketQueue, _Packet], _Packet] = {}

    def inject(self, message: int, image: int) -> None:
        """Put a message's packets before the port of its element's router."""
        route = self.events.program.routes[message]
        if message not in self.next:
            self._lay(message)
        way = self.into[self.trees[message].root]
        flits = -(-route.size_bytes // FLIT_BYTES)
        packets = way.waiting.setdefault(route.source, deque())
        for first in range(0, flits, PACKET_FLITS):
            count = min(PACKET_FLITS, flits - first)
            is_last = first + PACKET_FLITS >= flits
            packets.append(_Packet(message, count, is_last, there=count))
        self._begin(way)

    def _lay(self, message: int) -> None:
        """Find the ways that follow each way of a message's tree."""
        program = self.events.program
        tree = self.trees[message] = tree_of(program.machine, program.routes[message])
        at: dict[int, _PacketQueue] = {tree.root: self.into[tree.root]}
        following: dict[_PacketQueue, list[_PacketQueue]] = {}
        for link, source, target in tree.links:
            following.setdefault(at[source], []).append(self.links[link])
            at[target] = self.links[link]
        for router, elements in tree.targets:
            following.setdefault(at[router], []).append(self.out_of[router])
            self.elements[message, self.out_of[router]] = elements
        self.next[message] = following

    def _begin(self, way: _PacketQueue) -> None:
        """Pass the next flit on, if there is one and the way is free."""
        packet = way.choose()
        if way.is_busy or packet is None or packet.passed == packet.there:
            return
        way.is_busy = True
        self.events.clock.at(self.events.clock.now + way.flit_s, lambda: self._end(way, packet))

    def _end(self, way: _PacketQueue, packet: _Packet) -> None:
        way.is_busy = False
        packet.passed += 1
        is_through = packet.passed == packet.flits
        clock = self.events.clock
        for following in self.next[packet.message].get(way, ()):
            copy = self.copies.get((following, packet))
            if copy is None:
                copy = _Packet(packet.message, packet.flits, packet.is_last)
                self.copies[following, packet] = copy
            if is_through:
                del self.copies[following, packet]
            clock.at(
                clock.now + way.latency_s,
                lambda following=following, copy=copy: self._reach(way, following, copy),
            )
        if is_through:
            way.current = None
            self._tell(way, packet)
        self._begin(way)

    def _reach(self, source: _PacketQueue, way: _PacketQueue, packet: _Packet) -> None:
        """Take a flit in before the next way."""
        if packet.there == 0:
            way.waiting.setdefault(source, deque()).append(packet)
        packet.there += 1
        self._begin(way)

    def _tell(self, way: _PacketQueue, packet: _Packet) -> None:
        """Tell that a message has left its element's memory, or is in that of its targets."""
        if not packet.is_last:
            return
        if way is self.into[self.trees[packet.message].root]:
            self.events.left(packet.message)
        for element in self.elements.get((packet.message, way), ()):
            self.events.arrived(packet.message, element)
