"""The report of a compilation: where each operator went and why, what it needs, what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mizzen.diagnostics import Device, Diagnostic, Origin, Reason

SRAM = "Sram"
"""The compiler's name of the memory that is scarce."""


@dataclass(frozen=True, slots=True)
class OperatorPlacement:
    """One operator of the model; `macs` of one inference, `cycles` as the compiler estimates."""

    index: int
    kind: str
    name: str
    device: Device
    macs: int
    cycles: int
    reasons: tuple[Reason, ...] = ()

    @property
    def region(self) -> Device:
        """`device`, by its name in the JSON report."""
        return self.device


@dataclass(frozen=True, slots=True)
class Measure:
    """What the compiler estimates for one kind of memory.

    used_bytes     peak use
    access_cycles  cycles that the NPU waits for it
    accesses       bytes read and written, by what they hold
    """

    memory: str
    used_bytes: int
    access_cycles: int = 0
    accesses: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the compiled network's data, and the memory that the memory mode puts it in.

    `name` is ``constants``, ``arena`` (feature maps) or ``cache`` (the SRAM that stages them).
    """

    name: str
    memory: str
    used_bytes: int

    @property
    def is_sram(self) -> bool:
        """Whether it takes of the scarce memory."""
        return self.memory == SRAM


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Everything that is known about a compiled network.

    configuration  the configuration in force, JSON-ready
    arena_bytes    the runtime's tensor arena, the cache included
    flash_bytes    the artifact's file
    areas          bytes by what they hold, from the artifact itself
    memories       use by kind of memory, as the compiler counts it
    cycles         estimated cycles of one inference, memory accesses included
    npu_cycles     of these, what the NPU needs if memories never make it wait
    figures        numbers of the compiler's own report, by its names
    performance    per NPU operator: the performance data that its driver's users know, JSON-ready;
                   empty where there is none
    origins        per NPU operator: byte offset of a command to the model's operator
    diagnostics    what happened on the way
    """

    model: str
    configuration: dict[str, Any]
    compiler: str
    placements: tuple[OperatorPlacement, ...]
    arena_bytes: int
    flash_bytes: int
    areas: tuple[Area, ...]
    memories: tuple[Measure, ...]
    cycles: int
    npu_cycles: int
    figures: dict[str, int] = field(default_factory=dict[str, int])
    performance: tuple[dict[str, Any], ...] = ()
    origins: tuple[dict[int, Origin], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    log: str = field(default="", repr=False, compare=False)

    @property
    def on_npu(self) -> tuple[OperatorPlacement, ...]:
        """Operators on the NPU."""
        return tuple(row for row in self.placements if row.device is Device.NPU)

    @property
    def on_cpu(self) -> tuple[OperatorPlacement, ...]:
        """Operators on the CPU."""
        return tuple(row for row in self.placements if row.device is Device.CPU)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(row.macs for row in self.placements)

    @property
    def macs_on_npu(self) -> int:
        """Multiply-accumulates on the NPU."""
        return sum(row.macs for row in self.on_npu)

    @property
    def sram_bytes(self) -> int:
        """SRAM that the network needs at its peak."""
        return sum(area.used_bytes for area in self.areas if area.is_sram)
