"""Programs run on a clock: elements execute their instructions, a model of the network carries.

An element waits for messages, for free slots of targets, and for its own output's slots; sending
itself goes on beside the next instruction. What carries is a `Carrier`: bursts or flits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mizzen.mesh.machine.machine import Floats
from mizzen.mesh.program.program import (
    Compute,
    ElementProgram,
    Fetch,
    Give,
    MeshProgram,
    Receive,
    Send,
)
from mizzen.mesh.simulation.analytic import instruction_cycles

Action = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Activity:
    """A time for which an element was busy with an instruction of an image."""

    element: int
    layer: int | None
    image: int
    start_s: float
    stop_s: float


@dataclass(frozen=True, eq=False)
class Simulated:
    """What came of running a program for some images.

    images_per_s   in the second half of the images, of all replicas together
    latency_s      of an image in steady state, from its first instruction to its last, the median
    finished_s     when each image of each replica left, `[replicas, images]`
    element_s      busy time of each element over the whole run
    activities     what elements did, if that was asked for
    """

    images_per_s: float
    latency_s: float
    finished_s: Floats
    element_s: Floats
    activities: tuple[Activity, ...]


class Carrier(Protocol):
    """A model of the network."""

    def inject(self, message: int, image: int) -> None:
        """Begin to carry a message, after those that its port carries already."""
        ...


class Clock:
    """Actions at times, done in order; those of one time in the order in which they were set."""

    def __init__(self) -> None:
        self.now = 0.0
        self._pending: list[tuple[float, int, Action]] = []
        self._count = 0

    def at(self, time: float, action: Action) -> None:
        """Do something at a time that has not passed."""
        self._count += 1
        heapq.heappush(self._pending, (time, self._count, action))

    def run(self) -> None:
        """Do everything."""
        while self._pending:
            self.now, _, action = heapq.heappop(self._pending)
            action()


class Events:
    """The state of all elements while a program runs for `images` images a replica."""

    def __init__(self, program: MeshProgram, images: int, keeps_activities: bool) -> None:
        self.program = program
        self.images = images
        self.clock = Clock()
        self.carrier: Carrier | None = None
        self.place = [0] * len(program.elements)
        self.image = [0] * len(program.elements)
        self.busy = [False] * len(program.elements)
        self.index_of = {element.element: index for index, element in enumerate(program.elements)}
        self.received: dict[tuple[int, int], int] = {}
        self.consumed: dict[tuple[int, int], int] = {}
        self.injected = [0] * len(program.routes)
        self.sent = [0] * len(program.routes)
        self.messages_of = [_messages_of(element) for element in program.elements]
        self.sends_of = [_sends_of(element) for element in program.elements]
        self.slots = _slots(program)
        self.source_of = {
            message: index
            for index, of_region in enumerate(self.sends_of)
            for messages in of_region.values()
            for message in messages
        }
        self.started = np.full((program.replicas, images), np.inf)
        self.finished = np.zeros((program.replicas, images))
        self.element_s = np.zeros(program.machine.elements)
        self.activities: list[Activity] | None = [] if keeps_activities else None

    def run(self, carrier: Carrier) -> Simulated:
        """Run all elements to the end. Raises RuntimeError if they wait for each other forever."""
        self.carrier = carrier
        for index in range(len(self.program.elements)):
            self.advance(index)
        self.clock.run()
        stuck = [
            element.element
            for element, image in zip(self.program.elements, self.image, strict=True)
            if image < self.images
        ]
        if stuck:
            name = self.program.machine.element_name(stuck[0])
            raise RuntimeError(f"{len(stuck)} elements wait forever, the first is {name}")
        return self._simulated()

    def advance(self, index: int) -> None:
        """Execute an element's instructions until it waits or is busy."""
        if self.busy[index]:
            return
        element = self.program.elements[index]
        clock_hz = self.program.machine.kind_of(element.element).clock_hz
        while self.image[index] < self.images:
            instruction = element.instructions[self.place[index]]
            if not self._is_ready(index, instruction):
                return
            self._mark(element.replica, self.image[index], instruction)
            cycles = instruction_cycles(self.program.machine, element, instruction)
            if cycles:
                self._work(index, cycles / clock_hz)
                return
            self._complete(index)

    def arrived(self, message: int, target: int) -> None:
        """Take note that a message is in an element's memory."""
        key = message, target
        self.received[key] = self.received.get(key, 0) + 1
        self.advance(self.index_of[target])

    def left(self, message: int) -> None:
        """Take note that a message has left its element's memory."""
        self.injected[message] += 1
        self.advance(self.source_of[message])

    def _work(self, index: int, seconds: float) -> None:
        self.busy[index] = True
        element = self.program.elements[index]
        start, stop = self.clock.now, self.clock.now + seconds
        self.element_s[element.element] += seconds
        if self.activities is not None:
            instruction = element.instructions[self.place[index]]
            layer = instruction.kernel.layer if isinstance(instruction, Compute) else None
            activity = Activity(element.element, layer, self.image[index], start, stop)
            self.activities.append(activity)

        def finish() -> None:
            self.busy[index] = False
            self._complete(index)
            self.advance(index)

        self.clock.at(stop, finish)

    def _is_ready(self, index: int, instruction: object) -> bool:
        image = self.image[index]
        element = self.program.elements[index]
        match instruction:
            case Receive(message=message):
                return self.received.get((message, element.element), 0) > image
            case Compute(output=output):
                slots = element.regions[output].slots
                sends = self.sends_of[index].get(output, ())
                return all(self.injected[message] > image - slots for message in sends)
            case Send(message=message):
                return all(
                    image - self.consumed.get((message, target), 0) < self.slots[message, target]
                    for target in self.program.routes[message].targets
                )
            case _:
                return True

    def _mark(self, replica: int, image: int, instruction: object) -> None:
        now = self.clock.now
        if isinstance(instruction, Fetch):
            self.started[replica, image] = min(self.started[replica, image], now)
        elif isinstance(instruction, Give):
            self.finished[replica, image] = max(self.finished[replica, image], now)

    def _complete(self, index: int) -> None:
        """Have an instruction's effects, and go to the next one."""
        element = self.program.elements[index]
        instruction = element.instructions[self.place[index]]
        image = self.image[index]
        self.place[index] += 1
        if self.place[index] == len(element.instructions):
            self.place[index] = 0
            self.image[index] += 1
        if isinstance(instruction, Send):
            assert self.carrier is not None
            self.carrier.inject(instruction.message, image)
        elif isinstance(instruction, Compute):
            self._free(index, instruction)

    def _free(self, index: int, compute: Compute) -> None:
        element = self.program.elements[index].element
        for region in (*compute.operands, *compute.sums):
            for message in self.messages_of[index].get(region, ()):
                key = message, element
                self.consumed[key] = self.consumed.get(key, 0) + 1
                source = self.source_of[message]
                self.clock.at(self.clock.now, lambda source=source: self.advance(source))

    def _simulated(self) -> Simulated:
        finished = self.finished
        half = self.images // 2
        spans = finished[:, -1] - finished[:, half - 1] if half else finished[:, -1]
        counted = self.images - half if half else self.images
        rate = float(np.sum(counted / np.maximum(spans, np.finfo(float).tiny)))
        latency = float(np.median((finished - self.started)[:, half:]))
        activities = tuple(self.activities or ())
        return Simulated(rate, latency, finished, self.element_s, activities)


def _messages_of(element: ElementProgram) -> dict[int | None, list[int]]:
    """Return the messages that come into each region."""
    messages: dict[int | None, list[int]] = {}
    for instruction in element.instructions:
        if isinstance(instruction, Receive):
            messages.setdefault(instruction.region, []).append(instruction.message)
    return messages


def _sends_of(element: ElementProgram) -> dict[int, list[int]]:
    """Return the messages that leave each region."""
    messages: dict[int, list[int]] = {}
    for instruction in element.instructions:
        if isinstance(instruction, Send):
            messages.setdefault(instruction.region, []).append(instruction.message)
    return messages


def _slots(program: MeshProgram) -> dict[tuple[int, int], int]:
    """Return how many images of a message an element keeps, by message and element."""
    return {
        (instruction.message, element.element): element.regions[instruction.region].slots
        for element in program.elements
        for instruction in element.instructions
        if isinstance(instruction, Receive)
    }
