"""The summary file that Vela writes, `NAME_summary_SYSTEM.csv`, from a report of ours.

Programs read it, so Vela's columns come first, in Vela's order and units; ours come after them.

Ref: Vela 5.2.0, stats_writer.py, `write_summary_metrics_csv`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.escaping import csv_cell
from mizzen.report.cost import InferenceTime

if TYPE_CHECKING:
    from mizzen.report import CompileReport
    from mizzen.report.compilation import Measure
    from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Port

GIB = 1024.0**3
NOTHING_KNOWN = InferenceTime(0, 0, 0, 0.0)

SRAM = "Sram"
ON_CHIP_FLASH = "OnChipFlash"

# Memory in `vela.ini`, in names of columns, in values.
MEMORIES = (
    (SRAM, "sram", "SRAM"),
    ("Dram", "dram", "DRAM"),
    (ON_CHIP_FLASH, "on_chip_flash", "On-chip Flash"),
    ("OffChipFlash", "off_chip_flash", "Off-chip Flash"),
)


def summary_file(report: CompileReport, configuration: EthosUConfiguration) -> tuple[str, bytes]:
    """Return name and contents of the summary of a compilation."""
    name = f"{Path(report.model).stem}_summary_{configuration.system.name}.csv"
    return name, table_file([summary(report, configuration)])


def table_file(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Return a table as CSV: the columns' names, then the rows, which all have the first's.

    The name of a file or a tensor may be no text: its bytes are written as they are. One that a
    spreadsheet would compute has an apostrophe before it.
    """
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in rows)
    return file.getvalue().encode(errors="surrogateescape")


def summary(report: CompileReport, configuration: EthosUConfiguration) -> dict[str, object]:
    """Return the columns of the one row there is."""
    time = report.time or NOTHING_KNOWN
    clock_hz = time.clock_hz or configuration.system.core_clock_hz
    per_second = time.inferences_per_second or float("nan")
    measures = {measure.memory: measure for measure in report.memories}
    macs = report.figures.get("macCount", 0)
    passes = report.figures.get("npuOps", 0)
    return {
        "experiment": "default",
        "network": Path(report.model).stem,
        **_system(configuration, clock_hz),
        "inferences_per_second": per_second,
        "batch_size": 1,
        "inference_time": time.seconds,
        "passes_before_fusing": passes,
        "passes_after_fusing": passes,
        **{
            f"{column}_memory_used": used / 1024
            for (_, column, _), used in zip(MEMORIES, _used(report, configuration), strict=True)
        },
        "total_original_weights": report.figures.get("originalWeights", 0),
        "total_npu_encoded_weights": report.figures.get("encodedWeights", 0),
        **{
            column: value
            for name, prefix, _ in MEMORIES
            for column, value in _accesses(prefix, measures.get(name)).items()
        },
        "nn_macs": macs,
        "nn_tops": macs * 2 * per_second / 1e12,
        "cycles_npu": time.compute_cycles,
        **{
            f"cycles_{column}_access": measures[name].access_cycles if name in measures else 0
            for name, column, _ in MEMORIES
        },
        "cycles_total": time.cycles,
        "operators_on_npu": len(report.on_npu),
        "operators_on_cpu": len(report.on_cpu),
        "model_macs": report.macs,
        "model_macs_on_npu": report.macs_on_npu,
    }


def _used(report: CompileReport, configuration: EthosUConfiguration) -> list[int]:
    """Return bytes used of each memory; constants in SRAM count as on-chip flash, as in Vela."""
    used = {measure.memory: measure.used_bytes for measure in report.memories}
    if _constants_in_sram(configuration):
        constants = report.figures.get("readOnlyPeakUsage", 0)
        used[ON_CHIP_FLASH] = constants
        used[SRAM] = used.get(SRAM, 0) - constants
    return [used.get(name, 0) for name, _, _ in MEMORIES]


def _constants_in_sram(configuration: EthosUConfiguration) -> bool:
    return configuration.memory(configuration.mode.constants).value == SRAM


def _system(configuration: EthosUConfiguration, clock_hz: float) -> dict[str, object]:
    display = {name: value for name, _, value in MEMORIES}
    constants = configuration.memory(configuration.mode.constants).value
    arena = configuration.memory(configuration.mode.arena).value
    if _constants_in_sram(configuration):
        constants = ON_CHIP_FLASH
    return {
        "accelerator_configuration": _accelerator(configuration.accelerator.name),
        "system_config": configuration.system.name,
        "memory_mode": configuration.mode.name,
        "core_clock": clock_hz,
        "arena_cache_size": configuration.arena_cache_size_bytes / 1024,
        **{
            f"{column}_bandwidth": _bandwidth(configuration, name, clock_hz) / GIB
            for name, column, _ in MEMORIES
        },
        "weights_storage_area": display[constants],
        "feature_map_storage_area": display[arena],
    }


def _accelerator(name: str) -> str:
    """Spell `ethos-u55-128` as Vela's summary does: `Ethos_U55_128`."""
    product, family, macs = name.split("-")
    return f"{product.capitalize()}_{family.upper()}_{macs}"


def _bandwidth(configuration: EthosUConfiguration, memory: str, clock_hz: float) -> float:
    """Return bytes per second of a memory; a full port for one that no port has, as Vela does."""
    port = _port(configuration, memory)
    if port is not None:
        own_clock_hz = configuration.system.core_clock_hz
        return configuration.bandwidth_bytes_per_second(port) * clock_hz / own_clock_hz
    return configuration.accelerator.traits.axi_bytes_per_cycle * clock_hz


def _port(configuration: EthosUConfiguration, memory: str) -> Port | None:
    from mizzen.targets.ethos_u.machine.config import Port

    return next((port for port in Port if configuration.memory(port).value == memory), None)


def _accesses(prefix: str, measure: Measure | None) -> dict[str, int]:
    accesses = measure.accesses if measure is not None else {}
    feature_maps, weights = (accesses.get(what, (0, 0)) for what in ("FeatureMap", "Weights"))
    return {
        f"{prefix}_feature_map_read_bytes": feature_maps[0],
        f"{prefix}_feature_map_write_bytes": feature_maps[1],
        f"{prefix}_weight_read_bytes": weights[0],
        f"{prefix}_weight_write_bytes": weights[1],
        f"{prefix}_total_bytes": sum(map(sum, accesses.values())),
    }
