"""What of a system is not known, within what is possible: memories' rates and latencies, a clock.

A port moves at most its width in a cycle, for each port that the system has; nothing comes before
it is asked for. What is written follows what is read: the two latencies keep their ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    Memory,
    MemoryTiming,
    Port,
    SystemConfig,
)

SLOWEST_RATE = 1 / 256
"""Bytes in a cycle of the NPU: a serial flash of one line at a hundredth of its clock."""
LONGEST_LATENCY = 4096
"""Cycles; `vela.ini` has at most 500."""
SLOWEST_TIMER, FASTEST_TIMER = 1e-4, 1e3
"""Ticks of a profile's timer in a cycle of the NPU: a clock of 100 kHz beside one of 1 GHz."""
LATENCY_STEP = 2.0
"""The least change of a latency that is tried; latencies are whole cycles."""


class Quantity(Enum):
    """What a number says of a memory, or of the timer."""

    RATE = "bytes a cycle"
    LATENCY = "cycles of latency"
    TIMER = "ticks of the log's timer a cycle"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that is not known.

    memory       whose; None of the timer
    before       where the search begins: what the system configuration says
    least, most  what is possible
    """

    quantity: Quantity
    memory: Memory | None
    before: float
    least: float
    most: float

    def within(self, value: float) -> float:
        """Return the nearest possible value."""
        return min(max(value, self.least), self.most)


def parameters(configuration: EthosUConfiguration, *, timer: bool) -> tuple[Parameter, ...]:
    """Return what is not known of a system, and of the log's timer if its ticks are to be told."""
    found: list[Parameter] = []
    for memory, timing in _reached(configuration).items():
        widest = float(configuration.accelerator.traits.axi_bytes_per_cycle * timing.ports)
        rate = min(widest * timing.clock_scale, widest)
        latency = float(timing.read_latency_cycles)
        found += [
            Parameter(Quantity.RATE, memory, rate, SLOWEST_RATE, widest),
            Parameter(Quantity.LATENCY, memory, latency, 0.0, LONGEST_LATENCY),
        ]
    if timer:
        found.append(Parameter(Quantity.TIMER, None, 1.0, SLOWEST_TIMER, FASTEST_TIMER))
    return tuple(found)


def _reached(configuration: EthosUConfiguration) -> dict[Memory, MemoryTiming]:
    mode = configuration.mode
    ports = [port for port in Port if port in (mode.constants, mode.arena, mode.cache)]
    timings = (configuration.system.behind(port) for port in ports)
    return {timing.memory: timing for timing in timings}


def with_values(
    configuration: EthosUConfiguration, known: Sequence[Parameter], values: Sequence[float]
) -> EthosUConfiguration:
    """Return the configuration with memories as the values say; the timer is not in it."""
    system = configuration.system
    for parameter, value in zip(known, values, strict=True):
        system = _changed(system, configuration, parameter, value)
    return replace(configuration, system=system)


def _changed(
    system: SystemConfig, configuration: EthosUConfiguration, parameter: Parameter, value: float
) -> SystemConfig:
    if parameter.quantity is Quantity.TIMER:
        return system
    width = configuration.accelerator.traits.axi_bytes_per_cycle
    ports = {
        port: _timing(system.behind(port), width, parameter, value)
        if system.behind(port).memory is parameter.memory
        else system.behind(port)
        for port in Port
    }
    return replace(system, axi0=ports[Port.AXI0], axi1=ports[Port.AXI1])


def _timing(timing: MemoryTiming, width: int, parameter: Parameter, value: float) -> MemoryTiming:
    if parameter.quantity is Quantity.RATE:
        return replace(timing, clock_scale=value / (width * timing.ports))
    read, write = timing.read_latency_cycles, timing.write_latency_cycles
    share = write / read if read else 1.0
    return replace(
        timing, read_latency_cycles=round(value), write_latency_cycles=round(value * share)
    )
