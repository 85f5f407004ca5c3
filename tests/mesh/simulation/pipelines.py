"""Programs of random pipelines on a square of elements, for simulations to agree about."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from mizzen.mesh.machine import Machine, Work, WorkKind, find_machine
from mizzen.mesh.network import Box, Network
from mizzen.mesh.network.network import Tensor
from mizzen.mesh.program import (
    Compute,
    ElementProgram,
    Fetch,
    Give,
    Instruction,
    Kernel,
    MeshProgram,
    Receive,
    Region,
    RegionKind,
    Route,
    Send,
)

NO_BOX: Box = ((0, 1),)
WORK = Work(WorkKind.GENERAL, 1, 1)


@dataclass
class _Draft:
    """What an element will do."""

    regions: list[Region] = field(default_factory=list[Region])
    before: list[Instruction] = field(default_factory=list[Instruction])
    after: list[Instruction] = field(default_factory=list[Instruction])

    def region(self, kind: RegionKind, size: int, slots: int) -> int:
        """Add a region of a box of `size` bytes; return its index."""
        address = self.regions[-1].end if self.regions else 0
        box = ((0, size),)
        self.regions.append(Region(kind, -(-address // 16) * 16, size, slots, 0, box))
        return len(self.regions) - 1


def straight(machine: Machine, source: int, target: int) -> list[int]:
    """Return the links from an element's router to another's: along x, then along y."""
    x, y = machine.router_x, machine.router_y
    index = {(int(a), int(b)): router for router, (a, b) in enumerate(zip(x, y, strict=True))}
    here, there = int(machine.element_router[source]), int(machine.element_router[target])
    links: list[int] = []
    while here != there:
        if x[here] != x[there]:
            step = (int(x[here]) + int(np.sign(x[there] - x[here])), int(y[here]))
        else:
            step = (int(x[here]), int(y[here]) + int(np.sign(y[there] - y[here])))
        links.append(machine.links_of[here, index[step]])
        here = index[step]
    return links


def random_pipeline(seed: int) -> MeshProgram:
    """Return a program of three to five layers, each on one to four of sixteen elements.

    Every element sends what it computes to some of the next layer's; either compute or
    transfer may be the longer.
    """
    random = np.random.default_rng(seed)
    machine = find_machine("grid4x4")
    free = random.permutation(machine.usable).tolist()
    layers = [
        [int(free.pop()) for _ in range(random.integers(1, 5))]
        for _ in range(random.integers(3, 5))
    ]
    drafts = {element: _Draft() for layer in layers for element in layer}
    computes = 10 ** random.uniform(1.2, 2.7)
    usual_bytes = 10 ** random.uniform(2.5, 3.7)
    routes: list[Route] = []
    for element in layers[0]:
        place = drafts[element].region(RegionKind.INPUT, 16, 2)
        drafts[element].before.append(Fetch(0, place))
    for layer, following in pairwise(layers):
        for element in layer:
            count = int(random.integers(1, len(following) + 1))
            targets = sorted(random.choice(following, count, replace=False).tolist())
            _connect(
                machine, drafts, routes, element, targets, int(usual_bytes * random.uniform(0.5, 2))
            )
        fed = {target for route in routes for target in route.targets}
        for target in set(following) - fed:
            _connect(machine, drafts, routes, layer[0], [target], int(usual_bytes))
    return _program(machine, drafts, layers, routes, computes, random)


def _connect(
    machine: Machine,
    drafts: dict[int, _Draft],
    routes: list[Route],
    source: int,
    targets: list[int],
    size: int,
) -> None:
    message = len(routes)
    links = [link for target in targets for link in straight(machine, source, target)]
    routes.append(Route(source, tuple(targets), tuple(dict.fromkeys(links)), size))
    output = drafts[source].region(RegionKind.OUTPUT, size, 2)
    drafts[source].after.append(Send(message, output, ((0, size),)))
    for target in targets:
        place = drafts[target].region(RegionKind.INPUT, size, 2)
        drafts[target].before.append(Receive(message, place, ((0, size),)))


def _program(
    machine: Machine,
    drafts: dict[int, _Draft],
    layers: list[list[int]],
    routes: list[Route],
    cycles: float,
    random: np.random.Generator,
) -> MeshProgram:
    elements: list[ElementProgram] = []
    for layer in layers:
        for element in layer:
            draft = drafts[element]
            taken = [row.region for row in draft.before if isinstance(row, Receive | Fetch)]
            sent = [row.region for row in draft.after if isinstance(row, Send)]
            output = sent[0] if sent else draft.region(RegionKind.OUTPUT, 16, 2)
            kernel = Kernel(0, NO_BOX, None, 0, False)
            long = int(cycles * random.uniform(0.5, 2))
            compute = Compute(kernel, tuple(taken), (), None, output, WORK, long)
            last = [] if sent else [Give(0, output, NO_BOX)]
            rows = (*draft.before, compute, *draft.after, *last)
            elements.append(ElementProgram(element, 0, tuple(draft.regions), rows))
    network = Network("pipeline", (Tensor("x", (1,), 1),), (), (0,), (0,))
    return MeshProgram(machine, network, 1, tuple(elements), tuple(routes))
