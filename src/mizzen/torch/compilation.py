"""From PyTorch to an artifact: a model in one call, or a converted program.

A model is exported, quantised and compiled; a converted program is compiled whole or as a
partitioner says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget, backend_for, resolve_target
from mizzen.compiler.evidence import with_manifest
from mizzen.compiler.options import SystemKeywords, options_of
from mizzen.compiler.placement import Placement
from mizzen.compiler.torch.compile import assemble, compile_lowered, compile_program
from mizzen.compiler.torch.exported import capture_lock, export
from mizzen.compiler.torch.placement import Checks, lowered_program, place, require_quantized
from mizzen.diagnostics import Diagnostic, ProgressCallback, Severity, warn
from mizzen.files import write_files
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.package import tosa
from mizzen.quantize import require_torch
from mizzen.torch.calibration import calls_of
from mizzen.torch.conversion import converted
from mizzen.torch.given import call_of, module_of, program_of, require_program
from mizzen.torch.partitioner import EthosUPartitioner
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from mizzen.quantize import QuantizationConfig


def compile_converted(
    exported: ExportedProgram,
    accelerator: str | None = None,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
    **options: Unpack[SystemKeywords],
) -> Artifact:
    """Compile a program that was exported after `convert_pt2e`.

    The artifact takes and gives what the program does: floating-point tensors in PyTorch's layout.
    `options` are those of `mizzen.compile`, but `ignore_ops`. Its `report` says what went where
    and why. Raises E16x for programs that cannot be read, E2xx
    for a configuration that is not one, E230 for what is no exported program, E877 for one in
    training mode. Operators that the compiler refuses run in PyTorch.

    Without `accelerator` it is compiled for the NPU of `board`, else for ethos-u55-256.
    """
    require_torch()
    require_program(exported)
    chosen = resolve_target(options_of(accelerator, options, SystemKeywords, compile_converted))
    artifact = compile_program(
        exported,
        chosen,
        name=name,
        additional_checks=additional_checks,
        on_progress=on_progress,
    )
    return with_manifest(artifact, chosen)


def compile_for(
    exported: ExportedProgram,
    partitioner: EthosUPartitioner,
    *,
    name: str = "model",
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a converted program as a partitioner and its compile specification say."""
    require_program(exported)
    spec = partitioner.compile_spec
    chosen = ResolvedTarget(backend_for(spec.target), spec.configuration)
    compiler = chosen.backend.region_compiler(chosen.configuration, chosen.proof)
    require_quantized(exported, name)
    lowered = lowered_program(exported, name, compiler.window_limits)
    placed = place(lowered, compiler, partitioner.additional_checks, chosen.proof, on_progress)
    _dump(spec, lowered, placed)
    return with_manifest(assemble(lowered, placed, chosen), chosen)


def _dump(spec: EthosUCompileSpec, lowered: Lowered, placed: Placement) -> None:
    """Write what the compile specification wants to see, files for every region."""
    folder = spec.get_intermediate_path()
    if folder is None:
        return
    files: dict[Path, bytes] = {}
    for index, region in enumerate(placed.code.values()):
        graph = region.part.graph
        stem = Path(folder, f"{lowered.program.name}_{index}")
        files[stem.with_name(f"{stem.name}.tosa")] = tosa.write(graph)
        files[stem.with_name(f"{stem.name}_vela.tflite")] = region.network
        if spec.debug_mode is not None:
            lines = [
                {"operation": number, "kind": operation.kind, "origin": str(operation.origin)}
                for number, operation in enumerate(graph.sorted())
                if operation.origin is not None
            ]
            text = json.dumps(lines, indent=1) + "\n"
            files[stem.with_name(f"{stem.name}_debug.json")] = text.encode()
    write_files(files, Path(folder))


def compile(
    model: torch.nn.Module | ExportedProgram | Callable[..., Any],
    example_inputs: Any,
    accelerator: str | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    calibration: Iterable[Any] | None = None,
    quantization: QuantizationConfig | None = None,
    name: str | None = None,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[SystemKeywords],
) -> Artifact:
    """Quantise a floating-point model to 8 bits and compile it.

    model           a module, a function, or an exported program, whose dynamic shapes become those
                    of the example
    example_inputs  the arguments of one call, with the shapes that the artifact is for: tensors or
                    arrays, in order or in a dict by name
    kwargs          further arguments of the call, by keyword
    calibration     arguments of calls, at least some dozens of real inputs: they set the ranges;
                    in order, or dicts by name; a loader's batches are cut to the example's, and
                    labels are left out; without any, the example is the only one, and W870 says so
    accelerator     the NPU; without it that of `board`, else ethos-u55-256
    quantization    another configuration than int8 with scales by channel

    `options` are those of `mizzen.compile`, but `ignore_ops`. The artifact takes and gives what the
    model does, under the names of parameters and of keys in dicts. Raises E165 without PyTorch,
    E2xx for what is no model, example or configuration, before anything is done; E16x where the
    model cannot be exported, E87x where it cannot be quantised.
    """
    require_torch()
    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

    chosen = resolve_target(options_of(accelerator, options, SystemKeywords, compile))
    module = module_of(model)
    title = name or type(module).__name__
    example = call_of(module, example_inputs, kwargs)
    calls = [example] if calibration is None else calls_of(example, calibration)
    with capture_lock():
        program = program_of(module, example, title)
        quantizer = EthosUQuantizer(str(chosen.configuration.as_dict()["accelerator"]))
        quantizer.set_global(quantization or get_symmetric_quantization_config())
        result, missing = converted(program, calls, quantizer, title)
    made = compile_lowered(export(result, example, title), chosen,
                           name=title, on_progress=on_progress)  # fmt: skip
    artifact = with_manifest(made, chosen)
    if artifact.report is not None:
        said = (
            *artifact.report.diagnostics,
            *([UNCALIBRATED] if calibration is None else missing),
        )
        artifact.report = replace(artifact.report, diagnostics=said)
        warn(said, 0)
    return artifact


UNCALIBRATED = Diagnostic(
    "W870",
    "ranges come from the example inputs alone, since there was no calibration data",
    Severity.WARNING,
    help="give `calibration` some dozens of real inputs",
)
