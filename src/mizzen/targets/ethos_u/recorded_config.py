"""The configuration that a compile report recorded, put together again.

Its files need not be there any more: the report holds every number that was in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mizzen.targets.ethos_u.config import (
    EthosUConfiguration,
    Memory,
    MemoryMode,
    MemoryTiming,
    Optimise,
    Port,
    Setting,
    SystemConfig,
)
from mizzen.targets.ethos_u.system_config import find_accelerator


def recorded(configuration: Mapping[str, Any]) -> EthosUConfiguration | None:
    """Return the configuration of a report, as `EthosUConfiguration.as_dict` wrote it.

    None for one that does not hold what a configuration needs. E210 for an unknown accelerator.
    """
    rows = tuple(Setting(**row) for row in configuration.get("settings", ()))
    values: dict[str, Any] = {row.name: row.value for row in rows}
    try:
        accelerator = find_accelerator(configuration["accelerator"])
        mode = MemoryMode(
            str(configuration["memory_mode"]),
            *(Port(values[f"{area}_mem_area"]) for area in ("const", "arena", "cache")),
            arena_cache_size_bytes=None,
        )
        system = SystemConfig(
            str(configuration["system_config"]),
            float(values["core_clock"]),
            *(_timing(values, Memory(values[f"{port.value.lower()}_port"])) for port in Port),
        )
    except (KeyError, ValueError, TypeError):
        return None
    return EthosUConfiguration(
        accelerator=accelerator,
        system=system,
        mode=mode,
        files=tuple(configuration.get("files", ())),
        optimise=Optimise(configuration.get("optimise", Optimise.PERFORMANCE.value)),
        arena_cache_size_bytes=int(values["arena_cache_size"]),
        ignore_ops=(),
        settings=rows,
    )


def _timing(values: Mapping[str, Any], memory: Memory) -> MemoryTiming:
    name = memory.value
    return MemoryTiming(
        memory,
        clock_scale=float(values[f"{name}_clock_scale"]),
        ports=int(values[f"{name}_ports_used"]),
        burst_bytes=int(values[f"{name}_burst_length"]),
        read_latency_cycles=int(values[f"{name}_read_latency"]),
        write_latency_cycles=int(values[f"{name}_write_latency"]),
        max_reads=values.get(f"{name}_max_reads"),
        max_writes=values.get(f"{name}_max_writes"),
    )
