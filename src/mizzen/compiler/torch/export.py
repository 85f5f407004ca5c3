"""What stands in the way of a PyTorch program, in the user's terms: of its export, of the NPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from mizzen.diagnostics import MizzenError, Origin, Reason, fail, source_line
from mizzen.frontends.torch.int_lowering.int_context import is_dequantize, noted
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.partition.placement import Legal

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


FIRST_LINE_LETTERS = 300

HARMLESS = "The tensor attributes .* were assigned"
"""PyTorch's recurrent layers hold flat copies of their weights, of which export complains."""


def export(model: torch.nn.Module, example: tuple[Any, ...], name: str) -> ExportedProgram:
    """Export a model. E163 where its control flow or shapes depend on data, or export fails."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=HARMLESS)
            return torch.export.export(model, example)
    except MizzenError:
        raise
    except Exception as error:
        text = str(error)
        raise fail(
            "E163",
            f"PyTorch must be able to export the model: {_summary(text) or type(error).__name__}",
            origin=Origin(model=name, source=_place(error)),
            rule="torch.export",
            help="where a branch or a shape depends on the data, compute both ways and choose with "
            "torch.where, or split the model there",
        ) from error


def _summary(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:FIRST_LINE_LETTERS] if lines else ""


def _place(error: BaseException) -> str | None:
    """Return the user's line: in the error's own words, or of the innermost frame of theirs."""
    found = source_line(str(error))
    if found is not None:
        return found
    trace: list[str] = []
    current = error.__traceback__
    while current is not None:
        code = current.tb_frame.f_code
        trace.append(f'File "{code.co_filename}", line {current.tb_lineno}, in {code.co_name}')
        current = current.tb_next
    return source_line("\n".join(trace))


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
