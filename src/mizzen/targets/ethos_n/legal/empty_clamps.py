"""Activations that would keep no number at all.

ReLUs in a row are one clamp of the compute engines, with the bounds that all of them and the type
have in common. The library does not ask whether there are any; no public source says what engines
do with a lower bound above the upper one.

Ref: Ethos-N driver stack 23.02, `McePlePass.cpp`: the bounds that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.diagnostics import Reason
from mizzen.targets.ethos_n.network import Network, Node, Operand, Relu

SOURCE = "Ethos-N driver stack 23.02, activationMin and activationMax of MceData"
HELP = "leave the operation to the CPU, or correct its bounds"


@dataclass(frozen=True, slots=True)
class Emptied:
    """A ReLU that keeps none of the numbers `least` to `largest` that are left for it."""

    node: Node
    relu: Relu
    least: int
    largest: int

    @property
    def reason(self) -> Reason:
        """Say what must hold, and what came."""
        limit = f"some of the numbers {self.least} to {self.largest} that its input can have"
        actual = f"{self.relu.lower} to {self.relu.upper}"
        message = f"Relu must keep {limit}, and keeps {actual}"
        return Reason("clamped-range", message, limit, actual, HELP, SOURCE)


def emptied(network: Network) -> Iterator[Emptied]:
    """Return the ReLUs of a network, whose feature maps have 8 bits, that keep no number."""
    users = network.users()
    left: dict[Operand, tuple[int, int]] = {}
    for node in network:
        relu = node.operation
        if not isinstance(relu, Relu):
            continue
        (operand,) = node.inputs
        kind = operand.info.data_type
        least, largest = left.get(operand, (kind.lowest, kind.highest))
        if relu.lower > largest or relu.upper < least:
            yield Emptied(node, relu, least, largest)
        elif len(users[node.operand]) == 1:
            left[node.operand] = max(least, relu.lower), min(largest, relu.upper)
