"""The report of a PyTorch program's compilation."""

from __future__ import annotations

from collections.abc import Mapping

from mizzen.frontends.tflite import is_npu, npu_operator
from mizzen.frontends.torch.lower import Lowered
from mizzen.graph import Operation
from mizzen.partition import Partition, Place
from mizzen.report import Area, CompileReport, Measure, OperatorPlacement, Region
from mizzen.targets.ethos_u.config import Configuration
from mizzen.torch.legality import is_edge
from mizzen.torch.region import CompiledRegion

ON_CHIP = {"shram", "lutram"}
"""Memories inside the NPU, which the compiler lists with the system's."""


def report_of(
    lowered: Lowered,
    partition: Partition,
    code: Mapping[tuple[int, ...], CompiledRegion],
    configuration: Configuration,
) -> CompileReport:
    """Give the report; cycles and constants of several regions add up, their arena is shared."""
    used = [code[row.groups] for row in partition.regions if row.place is Place.NPU]
    estimates = [region.compiled.estimate for region in used]
    areas = _areas(used, configuration)
    return CompileReport(
        model=lowered.program.name,
        configuration=configuration.as_dict(),
        compiler=f"Vela {used[0].compiled.version}" if used else "none",
        placements=_placements(lowered, partition, used),
        arena_bytes=max((area.used_bytes for area in areas if area.name == "arena"), default=0),
        flash_bytes=sum(len(region.compiled.network) for region in used),
        areas=areas,
        memories=_memories(used),
        cycles=sum(estimate.cycles for estimate in estimates),
        npu_cycles=sum(estimate.npu_cycles for estimate in estimates),
        figures=_figures(used),
        origins=tuple(region.origins for region in used),
        diagnostics=tuple(configuration.warnings),
        log="".join(region.compiled.log for region in used),
    )


def _placements(
    lowered: Lowered, partition: Partition, used: list[CompiledRegion]
) -> tuple[OperatorPlacement, ...]:
    cycles: dict[int, int] = {}
    for region in used:
        cycles.update(region.cycles())
    edges = _edges(lowered)
    rows = [row for group, row in sorted(partition.groups.items()) if group not in edges]
    return tuple(
        OperatorPlacement(
            index=index,
            kind=lowered.origins[row.group].kind or "",
            name=_name(lowered, row.group),
            region=Region(row.place.value),
            macs=row.macs,
            cycles=cycles.get(row.group, 0),
            reasons=tuple(row.reasons),
        )
        for index, row in enumerate(rows)
    )


def _name(lowered: Lowered, group: int) -> str:
    """Say where an operator is: its module and line, else the name in the exported graph."""
    origin = lowered.origins[group]
    place = ", ".join(part for part in (origin.module, origin.source) if part)
    return place or origin.name or ""


def _edges(lowered: Lowered) -> set[int]:
    members: dict[int, list[Operation]] = {}
    for operation in lowered.graph:
        if operation.group is not None:
            members.setdefault(operation.group, []).append(operation)
    return {group for group, rows in members.items() if all(map(is_edge, rows))}


def _areas(used: list[CompiledRegion], configuration: Configuration) -> tuple[Area, ...]:
    mode = configuration.mode
    parts = [
        npu_operator(network, row)
        for network in (region.network for region in used)
        for row in network.main.operators
        if is_npu(row)
    ]
    constants = sum(part.read_only.nbytes for part in parts)
    arena = max((part.scratch_bytes for part in parts), default=0)
    cache = max((part.scratch_fast_bytes or 0 for part in parts), default=0)
    areas = [
        Area("constants", configuration.memory(mode.constants).value, constants),
        Area("arena", configuration.memory(mode.arena).value, arena),
    ]
    if mode.spills:
        areas.append(Area("cache", configuration.memory(mode.cache).value, cache))
    return tuple(areas)


def _memories(used: list[CompiledRegion]) -> tuple[Measure, ...]:
    """Add the regions up: their accesses, but the most that one of them uses."""
    rows: dict[str, Measure] = {}
    for region in used:
        for row in region.compiled.estimate.memories:
            if row.name in ON_CHIP:
                continue
            old = rows.get(row.name, Measure(row.name, 0))
            accesses = dict(old.accesses)
            for what, (read, written) in row.accesses.items():
                before = accesses.get(what, (0, 0))
                accesses[what] = (before[0] + read, before[1] + written)
            rows[row.name] = Measure(
                row.name,
                max(old.used_bytes, row.peak_bytes),
                old.access_cycles + row.access_cycles,
                accesses,
            )
    return tuple(rows.values())


def _figures(used: list[CompiledRegion]) -> dict[str, int]:
    total: dict[str, int] = {}
    for region in used:
        for name, value in region.compiled.estimate.figures.items():
            total[name] = total.get(name, 0) + value
    return total
