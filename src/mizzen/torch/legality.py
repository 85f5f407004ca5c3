"""What keeps an operation of a PyTorch program from the NPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.frontends.torch.context import noted
from mizzen.frontends.torch.lower import Lowered
from mizzen.graph import Operation
from mizzen.partition import Reason
from mizzen.partition.placement import Legal
from mizzen.targets.ethos_u.commands import Arch

Checks = Sequence[Callable[[Operation], str | None]]
"""The user's own: each says why an operation must stay on the CPU, or None."""

EDGES = ("torch.quantize", "torch.dequantize")


def is_edge(operation: Operation) -> bool:
    """Whether an operation only makes integers of real numbers, or the other way round."""
    return operation.kind == "CUSTOM" and operation["operator_name"] in EDGES


def legality(lowered: Lowered, arch: Arch, additional: Checks) -> Legal:
    """Give what says why an operation of a program may not be on an NPU."""
    del lowered, arch

    def legal(operation: Operation) -> Sequence[Reason]:
        if operation.kind == "CUSTOM":
            refusal = noted(operation)
            return (Reason("no-integer-form", refusal.reason, help=refusal.help or ""),)
        found = [check(operation) for check in additional]
        return tuple(
            Reason("additional-check", message, source="additional_checks")
            for message in found
            if message
        )

    return legal
