"""A floating-point model, calibrated and converted: torchao's flow with what Mizzen adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mizzen.compiler.torch.exported import export
from mizzen.diagnostics import Diagnostic
from mizzen.frontends.torch.program import explicit
from mizzen.quantize import without_import_messages

if TYPE_CHECKING:
    import torch

    from mizzen.quantize import EthosUQuantizer


def converted(
    model: torch.nn.Module,
    example: tuple[Any, ...],
    calls: Sequence[tuple[Any, ...]],
    quantizer: EthosUQuantizer,
    title: str,
) -> tuple[torch.nn.Module, list[Diagnostic]]:
    """Return the quantised model, and what of its calibration was not enough."""
    import torch

    with without_import_messages():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        from mizzen.quantize.decompose.regions import inline_regions
        from mizzen.quantize.decompose.updates import hold_weights, normalize_functional
        from mizzen.quantize.enough import CALLS, findings_of, saturation

    module = explicit(export(model, example, title)).module(check_guards=False)
    inline_regions(module)
    normalize_functional(module)
    hold_weights(module)
    prepared = prepare_pt2e(module, quantizer)
    with torch.no_grad():
        for arguments in calls:
            prepared(*arguments)
    missing = list(findings_of(prepared))
    result = convert_pt2e(prepared)
    return result, [*missing, *saturation(result, calls[:CALLS])]
