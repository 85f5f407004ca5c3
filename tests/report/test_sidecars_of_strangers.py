"""Reports beside artifacts that somebody changed: their configuration is whole, or is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mizzen.targets.ethos_u.machine.recorded_config import recorded
from mizzen.targets.ethos_u.machine.system_config import resolve


def configuration() -> dict[str, Any]:
    return resolve("ethos-u55-128").as_dict()


def setting(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for row in document["settings"]:
            if row["name"] == name:
                row["value"] = value

    return change


def field(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update({name: value})


def test_a_configuration_is_put_together_again() -> None:
    known, whole = recorded(configuration()), resolve("ethos-u55-128")
    assert known is not None
    assert (known.system, known.accelerator) == (whole.system, whole.accelerator)
    assert known.arena_cache_size_bytes == whole.arena_cache_size_bytes
    assert known.as_dict() == whole.as_dict()


@pytest.mark.parametrize(
    "change",
    [
        field("settings", 3),
        field("settings", [3]),
        field("settings", [{"name": "core_clock"}]),
        field("settings", []),
        field("files", 5),
        field("optimise", ["Performance"]),
        field("optimise", "Speed"),
        setting("core_clock", float("nan")),
        setting("core_clock", 0.0),
        setting("core_clock", 1e300),
        setting("core_clock", [1]),
        setting("Sram_read_latency", -3),
        setting("Sram_burst_length", 0),
        setting("Sram_max_reads", 1 << 63),
        setting("arena_cache_size", None),
        setting("axi0_port", {}),
        setting("const_mem_area", "Axi7"),
    ],
)
def test_no_configuration(change: Callable[[dict[str, Any]], None]) -> None:
    document = configuration()
    change(document)
    assert recorded(document) is None
