"""Compile a converted program, whole or as a partitioner says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget, backend_for, resolve_target
from mizzen.compiler.ethos_u.regions import TosaCode
from mizzen.compiler.options import CompileOptions, SystemKeywords
from mizzen.compiler.placement import Placement
from mizzen.compiler.torch.compile import assemble, compile_program
from mizzen.compiler.torch.placement import Checks, lowered_program, place
from mizzen.diagnostics import ProgressCallback
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.torch.partitioner import EthosUPartitioner
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram


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
    for a configuration that is not one; what the compiler refuses runs in PyTorch.
    """
    return compile_program(
        exported,
        resolve_target(CompileOptions(accelerator, **options)),
        name=name,
        additional_checks=additional_checks,
        on_progress=on_progress,
    )


def compile_for(
    exported: ExportedProgram,
    partitioner: EthosUPartitioner,
    *,
    name: str = "model",
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a converted program as a partitioner and its compile specification say."""
    spec = partitioner.compile_spec
    chosen = ResolvedTarget(backend_for(spec.target), spec.configuration)
    compiler = chosen.backend.region_compiler(chosen.configuration)
    lowered = lowered_program(exported, name, compiler.window_limits)
    placed = place(lowered, compiler, partitioner.additional_checks, on_progress)
    _dump(spec, lowered, placed)
    return assemble(lowered, placed.partition, placed.code, chosen)


def _dump(spec: EthosUCompileSpec, lowered: Lowered, placed: Placement) -> None:
    """Write what the compile specification wants to see, files for every region."""
    folder = spec.get_intermediate_path()
    if folder is None:
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for index, region in enumerate(placed.code.values()):
        assert isinstance(region, TosaCode), "a specification for Ethos-U gives Vela's regions"
        stem = f"{lowered.program.name}_{index}"
        (path / f"{stem}.tosa").write_bytes(region.tosa)
        (path / f"{stem}_vela.tflite").write_bytes(region.network)
        if spec.debug_mode is not None:
            rows = [
                {"operation": number, "kind": row.kind, "origin": str(row.origin)}
                for number, row in enumerate(region.operations)
                if row.origin is not None
            ]
            text = json.dumps(rows, indent=1) + "\n"
            (path / f"{stem}_debug.json").write_text(text, encoding="utf-8")
