"""Where the operators of a PyTorch program go: what may not be on the NPU, and the regions of it.

Operators are refused here in the user's terms, before the target is asked: for what has no form in
integers, and for what the user's own checks say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from mizzen.compiler.codegen import RegionCompiler
from mizzen.compiler.placement import Placement
from mizzen.compiler.placement import place as place_graph
from mizzen.compiler.proof.options import ProofOptions
from mizzen.diagnostics import ProgressCallback, Reason, fail
from mizzen.frontends.torch.int_lowering.int_context import is_dequantize, noted
from mizzen.frontends.torch.int_lowering.int_lower import Lowered, lower
from mizzen.frontends.torch.narrowing import read
from mizzen.frontends.torch.program import is_unquantized, require_no_control_flow
from mizzen.frontends.torch.training import require_inference
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits
from mizzen.partition.placement import Legal

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Checks = Sequence[Callable[[Any], str | None]]
"""The user's own: each is called with an FX node, and says why it must stay on the CPU, or None."""

QUANTIZE, DEQUANTIZE = "torch.quantize", "torch.dequantize"
NARROW, WIDEN = "torch.narrow", "torch.widen"
EDGES = (QUANTIZE, DEQUANTIZE, NARROW, WIDEN)


def is_edge(operation: Operation) -> TypeGuard[Custom]:
    """Whether an operation only brings numbers into the form that an NPU takes, or gives."""
    return isinstance(operation, Custom) and operation.operator_name in EDGES


def legality(lowered: Lowered, of_target: Legal, additional: Checks) -> Legal:
    """Return a function that tells why an operation of a program may not be on an NPU.

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
    reasons: dict[int | None, tuple[Reason, ...]] = {}
    for group, nodes in lowered.nodes.items():
        messages = [
            message
            for node in nodes
            if not is_dequantize(node)
            for check in additional
            if (message := check(node)) is not None
        ]
        reasons[group] = tuple(
            Reason("additional-check", message, source="additional_checks") for message in messages
        )
    return reasons


def require_quantized(exported: ExportedProgram, name: str) -> None:
    """Raise E167 for a program that computes with floats and was never quantised, E161 where that
    is because of control flow, which has no place in any.
    """
    require_no_control_flow(exported.graph.nodes, name)
    if is_unquantized(exported):
        raise fail(
            "E167",
            f"{name} must be quantised, and nothing in it is",
            help="quantise a file with `mizzen quantize MODEL.pt2 --data PATH`; in Python compile "
            "the model with mizzen.torch.compile(), or quantise it with EthosUQuantizer, "
            "prepare_pt2e and convert_pt2e first",
        )


def lowered_program(exported: ExportedProgram, name: str, limits: WindowLimits) -> Lowered:
    """Lower a program, for a target's limits.

    E16x for one that cannot be read, E877 for one that is in training mode.
    """
    require_inference(exported.graph_module, name)
    return lower(read(exported, name), limits)


def place(
    lowered: Lowered,
    compiler: RegionCompiler,
    additional_checks: Checks,
    proof: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Placement:
    """Place a program's groups so that the code generator takes every region, and is right."""
    legal = legality(lowered, compiler.legality(lowered.graph), additional_checks)
    return place_graph(lowered.graph, legal, is_edge, compiler, proof, on_progress)
