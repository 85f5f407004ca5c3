"""Compile an exported PyTorch program: lower it, place it, generate code, put steps together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.codegen import RegionCompiler
from mizzen.compiler.placement import Placement
from mizzen.compiler.placement import place as place_graph
from mizzen.compiler.torch.assembly import assemble
from mizzen.compiler.torch.export import Checks, is_edge, legality
from mizzen.diagnostics import ProgressCallback, fail
from mizzen.frontends.torch.int_lowering.int_lower import Lowered, lower
from mizzen.frontends.torch.program import read
from mizzen.ops.limits import WindowLimits

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def compile_program(
    exported: ExportedProgram,
    chosen: ResolvedTarget,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a converted program for an accelerator."""
    compiler = chosen.backend.region_compiler(chosen.configuration)
    lowered = lowered_program(exported, name, compiler.window_limits)
    placed = place(lowered, compiler, additional_checks, on_progress)
    return assemble(lowered, placed.partition, placed.code, chosen)


def lowered_program(exported: ExportedProgram, name: str, limits: WindowLimits) -> Lowered:
    """Lower a program, for a target's limits. E167 for one that was never quantised."""
    if not any("quantize_per_tensor" in str(node.target) for node in exported.graph.nodes):
        raise fail(
            "E167",
            f"{name} must be quantised, and nothing in it is",
            help="compile the model with mizzen.torch.compile(), or quantise it with "
            "EthosUQuantizer, prepare_pt2e and convert_pt2e first",
        )
    return lower(read(exported, name), limits)


def place(
    lowered: Lowered,
    compiler: RegionCompiler,
    additional_checks: Checks,
    on_progress: ProgressCallback | None,
) -> Placement:
    """Place a program's groups so that the code generator takes every region."""
    legal = legality(lowered, compiler.legality(lowered.graph), additional_checks)
    return place_graph(lowered.graph, legal, is_edge, compiler, on_progress)
