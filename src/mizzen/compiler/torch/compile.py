"""Compile an exported PyTorch program: lower it, place it, generate code, put steps together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.codegen import RegionCompiler
from mizzen.compiler.ethos_u.regions import TosaCode
from mizzen.compiler.placement import Placement
from mizzen.compiler.placement import place as place_graph
from mizzen.compiler.registry import (
    CompileOptions,
    ConfigFiles,
    ProgressCallback,
    ResolvedTarget,
    backend_for,
    choose,
)
from mizzen.compiler.torch.assembly import assemble
from mizzen.compiler.torch.legality import Checks, is_edge, legality
from mizzen.diagnostics import fail
from mizzen.frontends.torch.lower import Lowered, lower
from mizzen.frontends.torch.program import read
from mizzen.torch.partitioner import EthosUPartitioner
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram

DEFAULT_ACCELERATOR = "ethos-u55-128"


def compile_converted(
    exported: ExportedProgram,
    accelerator: str = DEFAULT_ACCELERATOR,
    *,
    name: str = "model",
    config: ConfigFiles = None,
    system_config: str | None = None,
    memory_mode: str | None = None,
    optimise: str = "Performance",
    arena_cache_size: int | None = None,
    target_options: Mapping[str, str] | None = None,
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a program that was exported after `convert_pt2e`.

    The artifact takes and gives what the program does: floating-point tensors in PyTorch's layout.
    Its `report` says what went where and why. Raises E16x for programs that cannot be read, E2xx
    for a configuration that is none; what the compiler refuses runs in PyTorch.
    """
    asked = CompileOptions(
        accelerator,
        config,
        system_config,
        memory_mode,
        optimise,
        arena_cache_size,
        target_options=target_options or {},
    )
    return compile_program(
        exported,
        choose(asked),
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
    lowered = lowered_program(exported, name)
    compiler = chosen.backend.region_compiler(chosen.configuration)
    placed = place(lowered, compiler, partitioner.additional_checks, on_progress)
    _dump(spec, lowered, placed)
    return assemble(lowered, placed.partition, placed.code, chosen)


def compile_program(
    exported: ExportedProgram,
    chosen: ResolvedTarget,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a converted program for an accelerator."""
    lowered = lowered_program(exported, name)
    compiler = chosen.backend.region_compiler(chosen.configuration)
    placed = place(lowered, compiler, additional_checks, on_progress)
    return assemble(lowered, placed.partition, placed.code, chosen)


def lowered_program(exported: ExportedProgram, name: str) -> Lowered:
    """Lower a program. E167 for one that was never quantised."""
    if not any("quantize_per_tensor" in str(node.target) for node in exported.graph.nodes):
        raise fail(
            "E167",
            f"{name} must be quantised, and nothing in it is",
            help="compile the model with mizzen.torch.compile(), or quantise it with "
            "EthosUQuantizer, prepare_pt2e and convert_pt2e first",
        )
    return lower(read(exported, name))


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


def place(
    lowered: Lowered,
    compiler: RegionCompiler,
    additional_checks: Checks,
    on_progress: ProgressCallback | None,
) -> Placement:
    """Place a program's groups so that the code generator takes every region."""
    legal = legality(lowered, compiler.legality(lowered.graph), additional_checks)
    return place_graph(lowered.graph, legal, is_edge, compiler, on_progress)
