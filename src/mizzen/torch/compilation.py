"""Compile an exported PyTorch program: lower it, place it, generate code, put steps together.

Where the code generator will not take a region, the group that it stops at goes to the CPU, and
the program is placed again: there is an artifact whatever the program is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact import Artifact
from mizzen.diagnostics import Reason, fail
from mizzen.frontends.torch.lower import Lowered, lower
from mizzen.frontends.torch.program import read
from mizzen.package import tosa
from mizzen.partition import Partition, Place, Region, extract, partition
from mizzen.targets.ethos_u.compiled import Stopped
from mizzen.targets.ethos_u.config import Configuration
from mizzen.targets.ethos_u.generate import Waiting
from mizzen.targets.ethos_u.generate_blame import Refused, find_refused
from mizzen.targets.ethos_u.legal.tosa import reasons_as_compiled
from mizzen.targets.ethos_u.system_config import ConfigFiles, resolve
from mizzen.torch.assembly import assemble
from mizzen.torch.legality import Checks, is_edge, legality
from mizzen.torch.partitioner import EthosUPartitioner
from mizzen.torch.region import CompiledRegion, Miscompiled, compile_region, lower_region
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram

DEFAULT_ACCELERATOR = "ethos-u55-128"

MOST_TRIES = 64
"""Times that a program is placed anew before every group that is left goes to the CPU."""


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
    additional_checks: Checks = (),
    waiting: Waiting | None = None,
) -> Artifact:
    """Compile a program that was exported after `convert_pt2e`.

    The artifact takes and gives what the program does: floating-point tensors in PyTorch's layout.
    Its `report` says what went where and why. Raises E16x for programs that cannot be read, E2xx
    for a configuration that is none; what the compiler refuses runs in PyTorch.
    """
    configuration = resolve(
        accelerator,
        config=config,
        system_config=system_config,
        memory_mode=memory_mode,
        optimise=optimise,
        arena_cache_size=arena_cache_size,
    )
    return compile_program(
        exported, configuration, name=name, additional_checks=additional_checks, waiting=waiting
    )


def compile_for(
    exported: ExportedProgram,
    partitioner: EthosUPartitioner,
    *,
    name: str = "model",
    waiting: Waiting | None = None,
) -> Artifact:
    """Compile a converted program as a partitioner and its compile specification say."""
    spec = partitioner.compile_spec
    lowered = lowered_program(exported, name)
    placed = place(lowered, spec.configuration, partitioner.additional_checks, waiting)
    _dump(spec, lowered, placed)
    return assemble(lowered, placed.partition, placed.code, spec.configuration)


def compile_program(
    exported: ExportedProgram,
    configuration: Configuration,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    waiting: Waiting | None = None,
) -> Artifact:
    """Compile a converted program for a configuration."""
    lowered = lowered_program(exported, name)
    placed = place(lowered, configuration, additional_checks, waiting)
    return assemble(lowered, placed.partition, placed.code, configuration)


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
        stem = f"{lowered.program.name}_{index}"
        (path / f"{stem}.tosa").write_bytes(region.tosa)
        (path / f"{stem}_vela.tflite").write_bytes(region.compiled.network)
        if spec.debug_mode is not None:
            rows = [
                {"operation": number, "kind": row.kind, "origin": str(row.origin)}
                for number, row in enumerate(region.operations)
                if row.origin is not None
            ]
            text = json.dumps(rows, indent=1) + "\n"
            (path / f"{stem}_debug.json").write_text(text, encoding="utf-8")


@dataclass(frozen=True, eq=False)
class Placement:
    """A program's regions, and the code of those on the NPU, by their groups."""

    partition: Partition
    code: dict[tuple[int, ...], CompiledRegion]


@dataclass(eq=False)
class _Search:
    """What is known after some tries."""

    lowered: Lowered
    configuration: Configuration
    waiting: Waiting | None
    refused: dict[int, Reason] = field(default_factory=dict[int, Reason])
    code: dict[tuple[int, ...], CompiledRegion] = field(
        default_factory=dict[tuple[int, ...], CompiledRegion]
    )

    def compile(self, region: Region) -> Stopped | Miscompiled | None:
        """Compile a region unless that was done; gives why it cannot be."""
        if region.groups in self.code:
            return None
        part = extract(self.lowered.graph, region.groups, self.lowered.program.name)
        result = compile_region(part, self.configuration, self.waiting)
        if not isinstance(result, CompiledRegion):
            return result
        self.code[region.groups] = result
        return None


def place(
    lowered: Lowered,
    configuration: Configuration,
    additional_checks: Checks,
    waiting: Waiting | None,
) -> Placement:
    """Place a program's groups so that the code generator takes every region."""
    legal = legality(lowered, configuration.accelerator.arch, additional_checks)
    search = _Search(lowered, configuration, waiting)
    why: Stopped | Miscompiled | None = None
    for _ in range(MOST_TRIES):
        found = partition(lowered.graph, legal, edge=is_edge, refused=search.refused)
        stopped = _first_stop(found, search)
        if stopped is None:
            return Placement(found, search.code)
        region, why = stopped
        search.refused.update(_blamed(region, why, search))
    assert why is not None
    everything = {group: _reason(why, configuration) for group in lowered.nodes}
    return Placement(partition(lowered.graph, legal, edge=is_edge, refused=everything), {})


def _first_stop(found: Partition, search: _Search) -> tuple[Region, Stopped | Miscompiled] | None:
    for region in found.regions:
        if region.place is Place.NPU:
            stopped = search.compile(region)
            if stopped is not None:
                return region, stopped
    return None


def _blamed(region: Region, why: Stopped | Miscompiled, search: _Search) -> dict[int, Reason]:
    """Find the groups because of which a region cannot be compiled; at least one of them."""
    if isinstance(why, Miscompiled):
        wrong = {row.group: DEFECT for row in why.operations if row.group is not None}
        return wrong or dict.fromkeys(region.groups, DEFECT)
    stopped = why
    part = extract(search.lowered.graph, region.groups, search.lowered.program.name)
    lower_region(part, search.configuration.accelerator.arch)
    refused = find_refused(part.graph, tosa.write, search.configuration, stopped)
    found = {
        row.operation.group: _said(row, search.configuration)
        for row in refused
        if row.operation.group is not None
    }
    return found or {region.groups[-1]: _reason(stopped, search.configuration)}


def _said(refused: Refused, configuration: Configuration) -> Reason:
    """Give the rule that an operation breaks, or the compiler's words where it breaks none."""
    arch, name = configuration.accelerator.arch, configuration.accelerator.name
    for breach in reasons_as_compiled(refused.operation, arch):
        return breach
    return Reason(
        "compiler",
        f"the compiler does not take its {refused.operation.kind} for {name}: {refused.said}",
        help="change the operator as the support list says, or leave it on the CPU",
        source="Vela",
    )


DEFECT = Reason(
    "compiler-defect",
    "the compiler would give wrong results for it, because of a defect of its own",
    help="nothing needs doing if the CPU has time for it",
    source="Vela 5.2.0",
)


def _reason(why: Stopped | Miscompiled, configuration: Configuration) -> Reason:
    if isinstance(why, Miscompiled):
        return DEFECT
    return Reason(
        "compiler",
        f"the compiler does not take it for {configuration.accelerator.name}: {why.said}",
        help="change the operator as the support list says, or leave it on the CPU",
        source="Vela",
    )
