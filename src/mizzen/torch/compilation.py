"""Compile an exported PyTorch program: lower it, place it, generate code, put steps together.

Where the code generator will not take a region, the group that it stops at goes to the CPU, and
the program is placed again: there is an artifact whatever the program is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mizzen.artifact import Artifact
from mizzen.frontends.torch.lower import Lowered, lower
from mizzen.frontends.torch.program import read
from mizzen.partition import Partition, Place, Reason, Region, extract, partition
from mizzen.targets.ethos_u.compiled import Stopped
from mizzen.targets.ethos_u.config import Configuration
from mizzen.targets.ethos_u.generate import Waiting
from mizzen.targets.ethos_u.system_config import ConfigFiles, resolve
from mizzen.torch.assembly import assemble
from mizzen.torch.legality import Checks, is_edge, legality
from mizzen.torch.region import CompiledRegion, compile_region

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
    return compile_lowered(lower(read(exported, name)), configuration, additional_checks, waiting)


def compile_lowered(
    lowered: Lowered,
    configuration: Configuration,
    additional_checks: Checks = (),
    waiting: Waiting | None = None,
) -> Artifact:
    """Compile a lowered program."""
    placed = place(lowered, configuration, additional_checks, waiting)
    return assemble(lowered, placed.partition, placed.code, configuration)


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

    def compile(self, region: Region) -> Stopped | None:
        """Compile a region unless that was done; gives why it cannot be."""
        if region.groups in self.code:
            return None
        part = extract(self.lowered.graph, region.groups, self.lowered.program.name)
        result = compile_region(part, self.configuration, self.waiting)
        if isinstance(result, Stopped):
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
    for _ in range(MOST_TRIES):
        found = partition(lowered.graph, legal, edge=is_edge, refused=search.refused)
        stopped = _first_stop(found, search)
        if stopped is None:
            return Placement(found, search.code)
        region, why = stopped
        search.refused.update(_blamed(region, why, search))
    everything = {group: _reason(why, configuration) for group in found.groups}
    return Placement(partition(lowered.graph, legal, edge=is_edge, refused=everything), {})


def _first_stop(found: Partition, search: _Search) -> tuple[Region, Stopped] | None:
    for region in found.regions:
        if region.place is Place.NPU:
            stopped = search.compile(region)
            if stopped is not None:
                return region, stopped
    return None


def _blamed(region: Region, stopped: Stopped, search: _Search) -> dict[int, Reason]:
    """Find the groups because of which the compiler stops: halve the region until one is left."""
    groups = region.groups
    while len(groups) > 1:
        half = len(groups) // 2
        for part in (groups[:half], groups[half:]):
            answer = search.compile(Region(Place.NPU, part))
            if answer is not None:
                groups, stopped = part, answer
                break
        else:  # neither half alone: what joins them is at fault, so they part
            groups = groups[half : half + 1]
    return {groups[0]: _reason(stopped, search.configuration)}


def _reason(stopped: Stopped, configuration: Configuration) -> Reason:
    return Reason(
        "compiler",
        f"the compiler does not take it for {configuration.accelerator.name}: {stopped.said}",
        help="change the operator as the support list says, or leave it on the CPU",
        source="Vela",
    )


Anything = Any
