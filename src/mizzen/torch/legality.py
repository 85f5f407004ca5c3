"""What keeps an operation of a PyTorch program from the NPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mizzen.diagnostics import Reason
from mizzen.frontends.torch.context import is_dequantize, noted
from mizzen.frontends.torch.lower import Lowered
from mizzen.graph import Operation
from mizzen.partition.placement import Legal
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.legal.tosa import reasons

Checks = Sequence[Callable[[Any], str | None]]
"""The user's own: each is called with an FX node, and says why it must stay on the CPU, or None."""

QUANTIZE, DEQUANTIZE = "torch.quantize", "torch.dequantize"
EDGES = (QUANTIZE, DEQUANTIZE)


def is_edge(operation: Operation) -> bool:
    """Whether an operation only makes integers of real numbers, or the other way round."""
    return operation.kind == "CUSTOM" and operation["operator_name"] in EDGES


def legality(lowered: Lowered, arch: Arch, additional: Checks) -> Legal:
    """Give what says why an operation of a program may not be on an NPU of a family.

    What depends on the order of axes, or on what passes make of an operation, is left to the code
    generator, which may refuse an operation that breaks none of these rules.
    """
    asked = _asked(lowered, additional)

    def legal(operation: Operation) -> Sequence[Reason]:
        return form_of(operation) or asked.get(operation.group, ()) or reasons(operation, arch)

    return legal


def form_of(operation: Operation) -> Sequence[Reason]:
    """Give why an operation has no form in integers, whatever the NPU; nothing if it has one."""
    if operation.kind != "CUSTOM":
        return ()
    refusal = noted(operation)
    return (Reason("no-integer-form", refusal.reason, help=refusal.help or ""),)


def _asked(lowered: Lowered, additional: Checks) -> dict[int | None, tuple[Reason, ...]]:
    """Ask the user's checks about every group once."""
    if not additional:
        return {}
    found: dict[int | None, tuple[Reason, ...]] = {}
    for group, nodes in lowered.nodes.items():
        messages = [
            message
            for node in nodes
            if not is_dequantize(node)
            for check in additional
            if (message := check(node)) is not None
        ]
        found[group] = tuple(
            Reason("additional-check", message, source="additional_checks") for message in messages
        )
    return found
