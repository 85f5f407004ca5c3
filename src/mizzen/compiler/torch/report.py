"""The report of a PyTorch program's compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.codegen import RegionCode, areas_of, figures_of, memories_of, performance_of
from mizzen.compiler.torch.legality import is_edge
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Operation
from mizzen.partition import Device, Partition
from mizzen.report import CompileReport, OperatorPlacement


def report_of(
    lowered: Lowered,
    partition: Partition,
    code: Mapping[tuple[int, ...], RegionCode],
    chosen: ResolvedTarget,
) -> CompileReport:
    """Return the report; cycles and constants of several regions add up, their arena is shared."""
    used = [code[row.groups] for row in partition.regions if row.device is Device.NPU]
    costs = [region.costs for region in used]
    areas = areas_of(costs)
    return CompileReport(
        model=lowered.program.name,
        configuration=chosen.configuration.as_dict(),
        compiler=used[0].compiler if used else "none",
        placements=_placements(lowered, partition, used),
        arena_bytes=max((area.used_bytes for area in areas if area.name == "arena"), default=0),
        flash_bytes=sum(len(region.network) for region in used),
        areas=areas,
        memories=memories_of(costs),
        cycles=sum(row.cycles for row in costs),
        npu_cycles=sum(row.npu_cycles for row in costs),
        figures=figures_of(costs),
        performance=performance_of(costs),
        origins=tuple(dict(region.origins) for region in used),
        diagnostics=tuple(chosen.configuration.warnings),
        log="".join(region.log for region in used),
    )


def _placements(
    lowered: Lowered, partition: Partition, used: Sequence[RegionCode]
) -> tuple[OperatorPlacement, ...]:
    cycles: dict[int, int] = {}
    for region in used:
        cycles.update(region.cycles)
    edges = _edges(lowered)
    rows = [row for group, row in sorted(partition.groups.items()) if group not in edges]
    return tuple(
        OperatorPlacement(
            index=index,
            kind=lowered.origins[row.group].kind or "",
            name=_name(lowered, row.group),
            device=row.device,
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
