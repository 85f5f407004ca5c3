"""The report of a PyTorch program's compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.codegen import RegionCode
from mizzen.compiler.report import NOTHING_COMPILED, compile_report
from mizzen.compiler.torch.export import is_edge
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Operation
from mizzen.partition import Device, Partition
from mizzen.report import CompileReport, OperatorPlacement


def report_of(
    lowered: Lowered,
    partition: Partition,
    code: Mapping[tuple[int, ...], RegionCode],
    target: ResolvedTarget,
) -> CompileReport:
    """Return the report of a program's compilation."""
    used = [code[row.groups] for row in partition.regions if row.device is Device.NPU]
    return compile_report(
        lowered.program.name,
        target.configuration,
        _placements(lowered, partition, used),
        [region.costs for region in used],
        compiler=used[0].compiler if used else NOTHING_COMPILED,
        flash_bytes=sum(len(region.network) for region in used),
        origins=[region.origins for region in used],
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
