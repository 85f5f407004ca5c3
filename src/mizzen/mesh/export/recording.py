"""What an element takes and gives on some images, recorded while a program is executed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.diagnostics import fail
from mizzen.graph import Array
from mizzen.mesh.execution.execution import check_inputs
from mizzen.mesh.execution.part import Arrival, Batch, Gift, Orders, Part
from mizzen.mesh.network.boxes import Box
from mizzen.mesh.program import MeshProgram


@dataclass(frozen=True, eq=False)
class Recording:
    """An execution of images, by every replica that a recorded element belongs to.

    elements  whose messages it has
    inputs    `[images, *shape]` of each tensor from outside
    messages  `[images, *box]` of each message that a recorded element sends or receives
    given     `[images, *box]` by element, tensor and box
    """

    images: int
    elements: frozenset[int]
    inputs: dict[int, Array]
    messages: dict[int, Array] = field(default_factory=dict[int, Array])
    given: dict[tuple[int, int, Box], Array] = field(
        default_factory=dict[tuple[int, int, Box], Array]
    )


def record(
    program: MeshProgram, inputs: Sequence[Array], elements: Sequence[int] | None = None
) -> Recording:
    """Execute a program here and record what some elements take and give, all by default.

    inputs  `[images, *shape]` for each of the network's inputs; each replica takes all of them

    Raises E534 for a network of shapes only and for other inputs than the network has, E532 to E535
    as execution does.
    """
    check_inputs(program.network, inputs)
    count = len(inputs[0]) if inputs else 0
    given = dict(zip(program.network.inputs, inputs, strict=True))
    all_elements = [each.element for each in program.elements]
    chosen = frozenset(all_elements if elements is None else elements)
    recorded = Recording(count, chosen, given)
    replicas = {each.replica for each in program.elements if each.element in chosen}
    for replica in sorted(replicas):
        _Replica(program, replica, chosen, recorded).run(Batch(0, replica, count, count - 1, given))
    return recorded


class _Replica:
    """One replica, a part for each recorded element and one for all others."""

    def __init__(
        self, program: MeshProgram, replica: int, chosen: frozenset[int], recorded: Recording
    ) -> None:
        self.recorded = recorded
        here = [each.element for each in program.elements if each.replica == replica]
        parts = [[element] for element in here if element in chosen]
        others = [element for element in here if element not in chosen]
        self.groups = [*parts, others] if others else parts
        self.parts = [Part(program, group, all_tensors=False) for group in self.groups]
        self.of = {element: index for index, group in enumerate(self.groups) for element in group}
        self.routes = program.routes
        self.orders = [Orders() for _ in self.parts]
        self.finished = 0

    def run(self, batch: Batch) -> None:
        """Execute a batch, and keep what goes from part to part and out."""
        for orders in self.orders:
            orders.begin.append(batch)
        while any(orders.begin or orders.arrivals for orders in self.orders):
            for index, part in enumerate(self.parts):
                orders, self.orders[index] = self.orders[index], Orders()
                if orders.begin or orders.arrivals:
                    answer = part.work(orders)
                    self._forward(index, answer.sent)
                    self._keep(index, answer.given)
                    self.finished += len(answer.finished)
        if self.finished != len(self.parts):
            raise fail(
                "E535",
                "every element must finish its program to be recorded, and some wait for messages "
                "that no element sends",
                help="`mizzen mesh check` says which elements wait for each other",
            )

    def _forward(self, index: int, sent: Sequence[Arrival]) -> None:
        for arrival in sent:
            self.recorded.messages[arrival.message] = np.array(arrival.values)
            targets = {self.of[target] for target in self.routes[arrival.message].targets}
            for other in targets - {index}:
                self.orders[other].arrivals.append(arrival)

    def _keep(self, index: int, given: Sequence[Gift]) -> None:
        (element, *others) = self.groups[index]
        for gift in given if not others else ():
            self.recorded.given[element, gift.tensor, gift.box] = np.array(gift.values)
