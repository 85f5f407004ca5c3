"""Which nodes, one behind the other, a pass of the compute engines can take.

In order: changes of layout and at most one extraction; the work of the compute engines; clamps; at
most one kernel of the programmable layer engine; requantisations, changes of layout and copies.

Ref: Ethos-N driver stack 23.02, the Support Library's `McePlePass`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mizzen.targets.ethos_n.commands_values import PleOperation
from mizzen.targets.ethos_n.lower.graph import Layout, Node
from mizzen.targets.ethos_n.lower.work import (
    Clamp,
    Copy,
    Extract,
    FusedPle,
    Mce,
    Relayout,
    Requantise,
)

MAX_3X3 = frozenset({PleOperation.MAXPOOL_3X3_2_2_EVEN, PleOperation.MAXPOOL_3X3_2_2_ODD})
KEEPS_NUMBERS = frozenset(
    {
        PleOperation.DOWNSAMPLE_2X2,
        PleOperation.INTERLEAVE_2X2_2_2,
        PleOperation.MAXPOOL_2X2_2_2,
        PleOperation.MEAN_XY_7X7,
        PleOperation.MEAN_XY_8X8,
        PleOperation.PASSTHROUGH,
        *MAX_3X3,
    }
)
"""Kernels that a requantisation may go before: they know nothing of the quantisation."""
PASSTHROUGH = FusedPle(PleOperation.PASSTHROUGH)


@dataclass(slots=True)
class Chain:
    """The nodes so far; `mce` and `ple` are those of the two engines, None before they come."""

    nodes: list[Node] = field(default_factory=list[Node])
    mce: Node | None = None
    ple: Node | None = None
    extracts: bool = False
    relayouts: bool = False
    requantises: bool = False

    @property
    def kernel(self) -> FusedPle:
        """What the programmable layer engine does."""
        return PASSTHROUGH if self.ple is None else self.ple.doing(FusedPle)

    def take(self, node: Node, required: Layout | None) -> bool:
        """Add a node if it fits; `required` is the layout that the pass must write."""
        if not (self._take_before(node) if self.mce is None else self._take_behind(node, required)):
            return False
        self.nodes.append(node)
        return True

    def _take_before(self, node: Node) -> bool:
        match node.work:
            case Relayout():
                return True
            case Extract():
                fits, self.extracts = not self.extracts, True
                return fits
            case Mce():
                self.mce = node
                return True
            case _:
                return False

    def _take_behind(self, node: Node, required: Layout | None) -> bool:
        open_for_ple = self.ple is None and not self.relayouts
        match node.work:
            case Clamp():
                return open_for_ple and not self.requantises
            case FusedPle():
                if open_for_ple:
                    self.ple = node
                return open_for_ple
            case Requantise():
                fits = self.kernel.kernel in KEEPS_NUMBERS
                self.requantises |= fits
                return fits
            case Relayout():
                fits = required is None or node.layout is required
                self.relayouts |= fits
                return fits
            case Copy():
                return True
            case _:
                return False
