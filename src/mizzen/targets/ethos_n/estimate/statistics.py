"""The figures of a pass, named and ordered as the library prints them.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`PassStats` and its parts).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_n.commands_values import PleOperation


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a pass moves of its inputs or outputs; bytes are those of all times that it does so.

    dram_parallel_bytes      moved while the engines work
    dram_non_parallel_bytes  moved while they wait
    sram_bytes               that need not be moved
    central_stripes          stripes without those at boundaries
    boundary_stripes         parts of stripes above and below, kept apart
    reloads                  how often everything is moved once more
    """

    dram_parallel_bytes: int = 0
    dram_non_parallel_bytes: int = 0
    sram_bytes: int = 0
    central_stripes: int = 0
    boundary_stripes: int = 0
    reloads: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.dram_parallel_bytes + other.dram_parallel_bytes,
            self.dram_non_parallel_bytes + other.dram_non_parallel_bytes,
            self.sram_bytes + other.sram_bytes,
            self.central_stripes + other.central_stripes,
            self.boundary_stripes + other.boundary_stripes,
            self.reloads + other.reloads,
        )


@dataclass(frozen=True, slots=True)
class WeightTraffic:
    """What a pass moves of its weights, and the part of their bytes that encoding them saves."""

    traffic: Traffic = Traffic()
    compression_savings: float = 0.0


@dataclass(frozen=True, slots=True)
class MceWork:
    """Operations that the result needs (two for a product and its sum), and cycles for them."""

    operations: int = 0
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class PleWork:
    """Patches of 4 x 4 elements that each engine's lanes process, and the kernel."""

    patches: int = 0
    operation: PleOperation = PleOperation.ADDITION


@dataclass(frozen=True, slots=True)
class Statistics:
    """All figures of a pass."""

    input: Traffic = Traffic()
    output: Traffic = Traffic()
    weights: WeightTraffic = WeightTraffic()
    mce: MceWork = MceWork()
    ple: PleWork = PleWork()
