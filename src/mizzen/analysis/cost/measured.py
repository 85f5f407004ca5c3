"""The system that a board's measured memories make of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.boards.board import Board, Measured, MeasuredMemory
from mizzen.diagnostics import Diagnostic, Severity
from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    MemoryTiming,
    Port,
    Setting,
)

SETTING = "measured"


def in_measured(configuration: EthosUConfiguration, board: Board) -> EthosUConfiguration:
    """Return the configuration with a board's memories as measured; as it is where none were.

    What was measured with another NPU, or beside another system configuration, is not taken, and
    a warning says so (W350).
    """
    measured = board.measured
    if measured is None:
        return configuration
    differs = next(_differences(configuration, measured), None)
    if differs is not None:
        doubt = Diagnostic(
            "W350",
            f"the memories of {board.name} were measured with {differs}: they are not taken",
            Severity.WARNING,
            help=f"ask for {measured.accelerator} and {measured.system_config}, or measure anew",
        )
        return replace(configuration, warnings=(*configuration.warnings, doubt))
    known = {memory.name: memory for memory in measured.memories}
    system, width = configuration.system, configuration.accelerator.traits.axi_bytes_per_cycle
    axi0, axi1 = (_timing(system.behind(port), known, width) for port in Port)
    changed = replace(system, axi0=axi0, axi1=axi1)
    settings = {setting.name: setting for setting in configuration.settings}
    for timing in (axi0, axi1):
        if timing.memory.value in known:
            settings |= {setting.name: setting for setting in _settings(timing, board.name)}
    settings[SETTING] = Setting(SETTING, measured.source, board.name)
    return replace(configuration, system=changed, settings=tuple(settings.values()))


def _differences(configuration: EthosUConfiguration, measured: Measured) -> Iterator[str]:
    """Say what was measured otherwise than the configuration has it."""
    pairs = (
        (configuration.accelerator.name, measured.accelerator),
        (configuration.system.name, measured.system_config),
    )
    return (f"{theirs}, and this is {ours}" for ours, theirs in pairs if ours != theirs)


def _timing(timing: MemoryTiming, known: dict[str, MeasuredMemory], width: int) -> MemoryTiming:
    memory = known.get(timing.memory.value)
    if memory is None:
        return timing
    return replace(
        timing,
        clock_scale=memory.bytes_per_cycle / (width * timing.ports),
        read_latency_cycles=memory.read_latency_cycles,
        write_latency_cycles=memory.write_latency_cycles,
    )


def _settings(timing: MemoryTiming, source: str) -> Iterator[Setting]:
    """Return the settings of `vela.ini` that say it."""
    name = timing.memory.value
    yield Setting(f"{name}_clock_scale", timing.clock_scale, source)
    yield Setting(f"{name}_read_latency", timing.read_latency_cycles, source)
    yield Setting(f"{name}_write_latency", timing.write_latency_cycles, source)
