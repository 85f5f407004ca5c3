"""The two tables that Vela writes, of an artifact that any compiler made.

`NET_per-layer.csv` has a row for each operation; its columns are Vela's, in Vela's order, and ours
after them. What stands in them is this project's estimate, not Vela's formula: CPU operators have
their cycles, `NPU` is what is waited for but memories, and `AC` are the cycles in which a memory's
bus is busy at its peak rate. `NET_summary_SYSTEM.csv` is the one that `mizzen compile` writes.

Ref: Vela 5.2.0, stats_writer.py and npu_performance.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mizzen.analysis.findings import Findings, system_of
from mizzen.compiler.ethos_u.summary import summary_file, table_file
from mizzen.report.compilation import SRAM
from mizzen.report.cost import MEMORY_BOUNDS, OperationCost
from mizzen.report.memory import MemoryReport

ACCESS_COLUMNS = {
    SRAM: "SRAM AC",
    "Dram": "DRAM AC",
    "OnChipFlash": "OnFlash AC",
    "OffChipFlash": "OffFlash AC",
}
"""Vela's columns, by the memories' names in `vela.ini`."""


def vela_tables(findings: Findings) -> dict[str, bytes]:
    """Return the tables that can be made, by the names of their files.

    Without costs there is none by layer, without the report of a compilation no summary.
    """
    tables: dict[str, bytes] = {}
    if findings.cost is not None:
        name = f"{Path(findings.model).stem}_per-layer.csv"
        tables[name] = table_file(list(per_layer_table(findings)))
    report = findings.compilation
    configuration = None if report is None else system_of(report)
    if report is not None and configuration is not None:
        name, contents = summary_file(report, configuration)
        tables[name] = contents
    return tables


def per_layer_table(findings: Findings) -> Iterator[dict[str, object]]:
    """Return the columns of each operation."""
    cost = findings.cost
    if cost is None:
        return
    macs = sum(each.macs for each in cost.operations)
    staged = _staged(findings.memory)
    peak = max(staged.values(), default=0)
    for operation in cost.operations:
        used = staged.get(operation.index, 0)
        kind = operation.origin.kind if operation.origin is not None else None
        yield {
            "Original Operator": kind or operation.name,
            "NNG Operator": operation.name,
            "Target": operation.device.value,
            "Staging Usage": used,
            "Peak% (Staging)": _percent(used, peak),
            "Op Cycles": operation.cycles,
            "Network% (cycles)": _percent(operation.cycles, cost.cycles),
            "NPU": sum(n for cause, n in operation.causes.items() if cause not in MEMORY_BOUNDS),
            **_accesses(operation, findings),
            "MAC Count": operation.macs,
            "Network% (MAC)": _percent(operation.macs, macs),
            "Util% (MAC)": 100 * operation.utilisation,
            "Name": (operation.origin.name if operation.origin is not None else None) or "",
            **_ours(operation),
        }


def _ours(operation: OperationCost) -> dict[str, object]:
    origin = operation.origin
    return {
        "bound": operation.bound.value if operation.causes else "",
        "start_cycles": operation.start_cycles,
        "end_cycles": operation.end_cycles,
        "read_bytes": sum(part.read_bytes for part in operation.traffic),
        "written_bytes": sum(part.written_bytes for part in operation.traffic),
        "vela_cycles": operation.vela_cycles,
        "operator": None if origin is None else origin.operator,
        "step": operation.step,
        "command_word": None if origin is None else origin.command,
        "shape": operation.shape,
        "detail": operation.detail,
    }


def _staged(memory: MemoryReport | None) -> dict[int, int]:
    """Return the bytes that are alive in SRAM at each operation."""
    areas = () if memory is None else [each for each in memory.areas if each.memory == SRAM]
    staged: dict[int, int] = {}
    for area in areas:
        for operation, alive in enumerate(area.live_bytes):
            staged[operation] = staged.get(operation, 0) + alive
    return staged


def _accesses(operation: OperationCost, findings: Findings) -> dict[str, object]:
    """Return the cycles that each memory's bus is busy; 0 where its rate is not known."""
    moved = dict.fromkeys(ACCESS_COLUMNS, 0)
    for part in operation.traffic:
        moved[part.memory] = moved.get(part.memory, 0) + part.read_bytes + part.written_bytes
    rates = findings.bytes_a_cycle
    return {
        column: round(moved[memory] / rates[memory]) if memory in rates else 0
        for memory, column in ACCESS_COLUMNS.items()
    }


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
