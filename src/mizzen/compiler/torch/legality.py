"""What keeps an operation of a PyTorch program from the NPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from mizzen.diagnostics import Reason
from mizzen.frontends.torch.int_lowering.int_context import is_dequantize, noted
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.partition.placement import Legal

Checks = Sequence[Callable[[Any], str | None]]
"""The user's own: each is called with an FX node, and says why it must stay on the CPU, or None."""

QUANTIZE, DEQUANTIZE = "torch.quantize", "torch.dequantize"
EDGES = (QUANTIZE, DEQUANTIZE)


def is_edge(operation: Operation) -> TypeGuard[Custom]:
    """Whether an operation only makes integers of real numbers, or the other way round."""
    return isinstance(operation, Custom) and operation.operator_name in EDGES


def legality(lowered: Lowered, of_target: Legal, additional: Checks) -> Legal:
    """Return what says why an operation of a program may not be on an NPU.

    `of_target` has the target's rules; an operation without a form in integers has none, and the
    user's own come first.
    """
    asked = _asked(lowered, additional)

    def legal(operation: Operation) -> Sequence[Reason]:
        return form_of(operation) or asked.get(operation.group, ()) or of_target(operation)

    return legal


def form_of(operation: Operation) -> Sequence[Reason]:
    """Return why an operation has no form in integers, whatever the NPU; nothing if it has one."""
    if not isinstance(operation, Custom):
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
