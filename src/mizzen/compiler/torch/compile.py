"""Compile an exported PyTorch program: place it, generate code, put the artifact together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.compiler import assembly
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.placement import Placement
from mizzen.compiler.report import with_diagnostics
from mizzen.compiler.torch.host import TorchLowering
from mizzen.compiler.torch.levels import few_levels
from mizzen.compiler.torch.placement import (
    Checks,
    lowered_program,
    place,
    require_quantized,
)
from mizzen.diagnostics import ProgressCallback
from mizzen.frontends.torch.int_lowering.int_lower import Lowered

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def assemble(
    lowered: Lowered,
    placed: Placement,
    chosen: ResolvedTarget,
) -> Artifact:
    """Return the artifact of a placed program."""
    artifact, _ = assembled(lowered, placed, chosen)
    return with_diagnostics(artifact, few_levels(lowered.program))


def assembled(
    lowered: Lowered,
    placed: Placement,
    chosen: ResolvedTarget,
) -> tuple[Artifact, Mapping[object, int]]:
    """Return the artifact of a placed program, and its tensors by the values that they are."""
    return assembly.assembled(TorchLowering(lowered), placed, chosen)


def compile_program(
    exported: ExportedProgram,
    chosen: ResolvedTarget,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a converted program for an accelerator. E167 for one that was never quantised."""
    require_quantized(exported, name)
    return compile_lowered(
        exported,
        chosen,
        name=name,
        additional_checks=additional_checks,
        on_progress=on_progress,
    )


def compile_lowered(
    exported: ExportedProgram,
    chosen: ResolvedTarget,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a program of which what is quantised, if anything, may be on the accelerator."""
    compiler = chosen.backend.region_compiler(chosen.configuration, chosen.proof)
    lowered = lowered_program(exported, name, compiler.window_limits)
    placed = place(lowered, compiler, additional_checks, chosen.proof, on_progress)
    return assemble(lowered, placed, chosen)
