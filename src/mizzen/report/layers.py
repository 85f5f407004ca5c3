"""The layers of a network as a user knows them, each with what it costs and needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mizzen.diagnostics import Device
from mizzen.report.cost import Bound


@dataclass(frozen=True, slots=True)
class Layer:
    """An operator of the user's model, or what the NPU does for none of them.

    index            of the operator in the model; None for transfers and copies of no operator
    name             of what it computes
    device           where it executes
    macs             multiply-accumulates of one inference
    cycles           what the inference gets longer by it; 0 where it is part of another operation
    share            of the inference's cycles, 0 to 1
    causes           `cycles` by what they are waited for
    utilisation      MACs over what the whole array could do in `cycles`, 0 to 1
    sram_bytes       alive in the SRAM at most while it executes; None where that is not known
    shape            what it takes and gives in the model: ``49x10x1 -> 25x5x64``
    operations       what it became, by index in the cost report
    subgraph         whose operator it is, where the network has several
    """

    index: int | None
    kind: str
    name: str
    device: Device
    macs: int
    cycles: int
    share: float
    causes: Mapping[Bound, int]
    utilisation: float
    sram_bytes: int | None
    shape: str
    operations: tuple[int, ...]
    subgraph: str = ""

    @property
    def bound(self) -> Bound | None:
        """What most of its time is waited for; None where it takes none."""
        spent = {cause: cycles for cause, cycles in self.causes.items() if cycles}
        return max(spent, key=lambda cause: spent[cause]) if spent else None

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "index": self.index,
            "kind": self.kind,
            "name": self.name,
            "device": self.device.value,
            "macs": self.macs,
            "cycles": self.cycles,
            "share": self.share,
            "causes": {cause.value: cycles for cause, cycles in self.causes.items()},
            "bound": None if self.bound is None else self.bound.value,
            "utilisation": self.utilisation,
            "sram_bytes": self.sram_bytes,
            "shape": self.shape,
            "operations": list(self.operations),
            **({"subgraph": self.subgraph} if self.subgraph else {}),
        }


ORDERS: Final[Mapping[str, Callable[[Layer], float]]] = {
    "cycles": lambda layer: -layer.cycles,
    "macs": lambda layer: -layer.macs,
    "sram": lambda layer: -(layer.sram_bytes or 0),
    "utilisation": lambda layer: layer.utilisation if layer.macs else 2.0,
}
"""What layers can be sorted by besides their order in the model, the most interesting first."""


def sorted_layers(layers: Sequence[Layer], order: str | None) -> Iterator[Layer]:
    """Return layers by one of `ORDERS`; without one, as they are."""
    yield from layers if order is None else sorted(layers, key=ORDERS[order])
