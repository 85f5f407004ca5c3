"""From a PyTorch model to an artifact in one call: export, quantise, compile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions, SystemKeywords
from mizzen.compiler.torch.compile import compile_program
from mizzen.compiler.torch.exported import export
from mizzen.diagnostics import Diagnostic, ProgressCallback, Severity, fail
from mizzen.quantize import require_torch

if TYPE_CHECKING:
    import torch

    from mizzen.quantize import QuantizationConfig

Inputs = Sequence[Any]


def compile(
    model: torch.nn.Module,
    example_inputs: Inputs,
    accelerator: str | None = None,
    *,
    calibration: Iterable[Inputs | Any] | None = None,
    quantization: QuantizationConfig | None = None,
    name: str | None = None,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[SystemKeywords],
) -> Artifact:
    """Quantise a floating-point model to 8 bits and compile it.

    example_inputs  the arguments of one call, with the shapes that the artifact is for
    calibration     arguments of calls, at least some dozens of real inputs: they set the ranges;
                    without any, the example is the only one, and W870 says so
    quantization    another configuration than int8 with scales by channel

    `options` are those of `mizzen.compile`, but `ignore_ops`. The artifact takes and gives what the
    model does. Raises E165 without PyTorch, E16x where the model cannot be exported, E87x where it
    cannot be quantised, E2xx for a configuration that is not one.
    """
    require_torch()
    asked = CompileOptions(accelerator, **options)
    chosen = resolve_target(asked)
    _require_inference(model)
    title = name or type(model).__name__
    calls = [tuple(example_inputs)] if calibration is None else [_call(row) for row in calibration]
    example = tuple(example_inputs)
    converted = _converted(model, example, calls, quantization, asked.accelerator_name, title)
    artifact = compile_program(export(converted, example, title), chosen,
                               name=title, on_progress=on_progress)  # fmt: skip
    if calibration is None and artifact.report is not None:
        _warn(artifact)
    return artifact


def _converted(
    model: torch.nn.Module,
    example: tuple[Any, ...],
    calls: list[tuple[Any, ...]],
    quantization: QuantizationConfig | None,
    accelerator: str,
    title: str,
) -> torch.nn.Module:
    import torch

    from mizzen.quantize import (
        EthosUQuantizer,
        get_symmetric_quantization_config,
        without_import_messages,
    )

    with without_import_messages():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = EthosUQuantizer(accelerator)
    quantizer.set_global(quantization or get_symmetric_quantization_config())
    exported = export(model, example, title)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for arguments in calls:
            prepared(*arguments)
    return convert_pt2e(prepared)


def _call(row: Any) -> tuple[Any, ...]:
    return tuple(row) if type(row) in (tuple, list) else (row,)


def _require_inference(model: torch.nn.Module) -> None:
    if model.training:
        raise fail(
            "E877",
            "the model must be in inference mode, and it is in training mode",
            help="call model.eval() first; for training with quantisation, use prepare_qat_pt2e",
        )


def _warn(artifact: Artifact) -> None:
    from dataclasses import replace

    assert artifact.report is not None
    warning = Diagnostic(
        "W870",
        "ranges come from the example inputs alone, since there was no calibration data",
        Severity.WARNING,
        help="give `calibration` some dozens of real inputs",
    )
    diagnostics = (*artifact.report.diagnostics, warning)
    artifact.report = replace(artifact.report, diagnostics=diagnostics)
