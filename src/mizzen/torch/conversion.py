"""A floating-point model, calibrated and converted: torchao's flow with what Mizzen adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mizzen.compiler.torch.call import Call
from mizzen.diagnostics import Diagnostic
from mizzen.frontends.torch.program import explicit, require_no_control_flow
from mizzen.frontends.torch.training import require_inference
from mizzen.quantize import without_import_messages

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from mizzen.quantize import EthosUQuantizer


def converted(
    program: ExportedProgram, calls: Sequence[Call], quantizer: EthosUQuantizer, title: str
) -> tuple[torch.nn.Module, list[Diagnostic]]:
    """Return the quantised model, and what of its calibration was not enough.

    E161 for a loop, E877 for a program in training mode.
    """
    import torch

    with without_import_messages():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        from mizzen.quantize.decompose.regions import inline_regions
        from mizzen.quantize.decompose.updates import hold_weights, normalize_functional
        from mizzen.quantize.enough import CALLS, findings_of, saturation

    require_inference(program.graph_module, title)
    module = explicit(program).module(check_guards=False)
    inline_regions(module)
    require_no_control_flow(module.graph.nodes, title)
    normalize_functional(module)
    hold_weights(module)
    prepared = prepare_pt2e(module, quantizer)
    with torch.no_grad():
        for call in calls:
            call.of(prepared)
    missing = list(findings_of(prepared))
    result = convert_pt2e(prepared)
    return result, [*missing, *saturation(result, [call.leaves for call in calls[:CALLS]])]
