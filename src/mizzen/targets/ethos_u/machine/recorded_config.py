"""The configuration that a compile report recorded, put together again.

Its files need not be there any more: the report holds every number that was in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    Memory,
    MemoryMode,
    MemoryTiming,
    Optimise,
    Port,
    Setting,
    SystemConfig,
)
from mizzen.targets.ethos_u.machine.system_config import (
    at_least_one,
    count,
    find_accelerator,
    positive,
)


def recorded(configuration: Mapping[str, Any]) -> EthosUConfiguration | None:
    """Return the configuration of a report, as `EthosUConfiguration.as_dict` wrote it.

    None for one that does not hold what a configuration needs. E210 for an unknown accelerator.
    """
    try:
        return _configuration(configuration)
    except (KeyError, ValueError, TypeError):
        return None


def _configuration(known: Mapping[str, Any]) -> EthosUConfiguration:
    settings = tuple(map(_setting, known["settings"]))
    values = {setting.name: str(setting.value) for setting in settings}
    return EthosUConfiguration(
        accelerator=find_accelerator(str(known["accelerator"])),
        system=SystemConfig(
            str(known["system_config"]),
            positive(values["core_clock"]),
            *(_timing(values, Memory(values[f"{port.value.lower()}_port"])) for port in Port),
        ),
        mode=MemoryMode(
            str(known["memory_mode"]),
            *(Port(values[f"{area}_mem_area"]) for area in ("const", "arena", "cache")),
            arena_cache_size_bytes=None,
        ),
        files=tuple(map(str, known.get("files", ()))),
        optimise=Optimise(known.get("optimise", Optimise.PERFORMANCE.value)),
        arena_cache_size_bytes=count(values["arena_cache_size"]),
        ignore_ops=(),
        settings=settings,
    )


def _setting(known: Mapping[str, Any]) -> Setting:
    """Return a setting, whose value is a number or a word."""
    value = known["value"]
    if not isinstance(value, str | int | float):
        raise TypeError(f"{value!r} is no value of a setting")
    return Setting(str(known["name"]), value, str(known["source"]))


def _timing(values: Mapping[str, str], memory: Memory) -> MemoryTiming:
    name = memory.value
    most = (values.get(f"{name}_max_{what}") for what in ("reads", "writes"))
    return MemoryTiming(
        memory,
        positive(values[f"{name}_clock_scale"]),
        at_least_one(values[f"{name}_ports_used"]),
        at_least_one(values[f"{name}_burst_length"]),
        count(values[f"{name}_read_latency"]),
        count(values[f"{name}_write_latency"]),
        *(None if number is None else count(number) for number in most),
    )
