"""The machine that a stream is timed on: its arithmetic, its buses, and what lies behind them.

Ref: `vela.ini` (bandwidths, latencies, bursts, transactions outstanding); ethos-u-core-driver,
ethosu_config_u55.h and ethosu_config_u65.h (how a driver has bursts split).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.hazards.maps import Kind, MemoryBlock
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import (
    Accelerator,
    EthosUConfiguration,
    Memory,
    MemoryTiming,
    Port,
)
from mizzen.targets.ethos_u.machine.program import RegionIndex

SPLIT_BYTES = 64
"""A burst ends at a multiple of so many bytes: AXI_LIMIT0_MAX_BEATS_BYTES 0 of the driver."""
OUTSTANDING_SHARE_U85 = 0.64
BUFFER_SHARE = 0.8
"""Of the transactions and of the bytes that may be outstanding on U85, what is on average.

Ref: Vela 5.2, the limits of a channel in its C++ core's estimate.
"""
TABLE_BYTES_PER_CYCLE = 1.0
"""Into the NPU's table memory. Ref: Vela 5.2, performance of the memory LUT."""


@dataclass(frozen=True, slots=True)
class Bus:
    """A port, and the memory behind it.

    bytes_per_cycle  that the memory gives and takes in all, at the NPU's clock
    burst_bytes      shortest run of bytes that the memory is as fast as it can be with
    chunk_bytes      longest run of bytes that is asked for at once
    reads, writes    transactions that may be outstanding; None for any number
    outstanding_share  of these that are under way on average
    """

    port: Port
    memory: Memory
    bytes_per_cycle: float
    burst_bytes: int
    chunk_bytes: int
    read_latency_cycles: int
    write_latency_cycles: int
    reads: int | None
    writes: int | None
    outstanding_share: float = 1.0

    def read_bytes_per_cycle(self, run_bytes: float, held_bytes: int | None = None) -> float:
        """Return the rate at which one reader can have runs of so many bytes.

        Runs shorter than a burst take a burst's time; what is outstanding takes the latency's.

        held_bytes  that the reader's buffer for what comes in any order holds; None for any number
        """
        rate = self._rate(run_bytes, self.reads, self.read_latency_cycles)
        if held_bytes is None or not self.read_latency_cycles:
            return rate
        return min(rate, BUFFER_SHARE * held_bytes / self.read_latency_cycles)

    def write_bytes_per_cycle(self, run_bytes: float) -> float:
        """Return the rate at which one writer can write runs of so many bytes."""
        return self._rate(run_bytes, self.writes, self.write_latency_cycles)

    def shared_bytes_per_cycle(self, run_bytes: float) -> float:
        """Return the rate of all readers and writers together, in runs of so many bytes."""
        return self.bytes_per_cycle * min(1.0, max(run_bytes, 1.0) / self.burst_bytes)

    def _rate(self, run_bytes: float, outstanding: int | None, latency_cycles: int) -> float:
        rate = self.shared_bytes_per_cycle(run_bytes)
        if not outstanding or not latency_cycles:
            return rate
        share = self.outstanding_share
        return min(rate, share * outstanding * self.chunk_bytes / latency_cycles)


@dataclass(frozen=True, slots=True)
class Machine:
    """An accelerator in a system.

    constants, arena, cache  the buses that its regions are reached through
    """

    accelerator: Accelerator
    clock_hz: float
    constants: Bus
    arena: Bus
    cache: Bus

    @property
    def is_u85(self) -> bool:
        """Whether it is a U85, whose traversals and rates are its own."""
        return self.accelerator.arch is Arch.U85

    @property
    def beat_bytes(self) -> int:
        """The width of its ports."""
        return self.accelerator.traits.axi_bytes_per_cycle

    def bus(self, place: MemoryBlock) -> Bus | None:
        """Return the bus to a memory; None for the NPU's own."""
        if place.kind is not Kind.REGION:
            return None
        match place.index:
            case RegionIndex.READ_ONLY:
                return self.constants
            case RegionIndex.SCRATCH_FAST:
                return self.cache
            case _:
                return self.arena


def machine_of(configuration: EthosUConfiguration) -> Machine:
    """Return the machine of a configuration."""
    mode, accelerator = configuration.mode, configuration.accelerator
    buses = {port: _bus(accelerator, port, configuration.system.behind(port)) for port in Port}
    return Machine(
        accelerator,
        configuration.system.core_clock_hz,
        buses[mode.constants],
        buses[mode.arena],
        buses[mode.cache],
    )


def _bus(accelerator: Accelerator, port: Port, timing: MemoryTiming) -> Bus:
    width = accelerator.traits.axi_bytes_per_cycle
    return Bus(
        port=port,
        memory=timing.memory,
        bytes_per_cycle=width * timing.ports * timing.clock_scale,
        burst_bytes=timing.burst_bytes,
        chunk_bytes=max(SPLIT_BYTES, timing.burst_bytes),
        read_latency_cycles=timing.read_latency_cycles,
        write_latency_cycles=timing.write_latency_cycles,
        reads=_times(timing.max_reads, timing.ports),
        writes=_times(timing.max_writes, timing.ports),
        outstanding_share=OUTSTANDING_SHARE_U85 if accelerator.arch is Arch.U85 else 1.0,
    )


def _times(outstanding: int | None, ports: int) -> int | None:
    return None if outstanding is None else outstanding * ports
