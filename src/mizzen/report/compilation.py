"""The report of a compilation: where each operator went and why, what it needs, what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mizzen.diagnostics import Diagnostic, Origin


class Region(Enum):
    """Where an operator executes."""

    NPU = "NPU"
    CPU = "CPU"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operator is not on the NPU: what must hold, what came, what to do.

    `limit` and `actual` are empty where only the compiler's own words are known.
    """

    rule: str
    message: str
    limit: str = ""
    actual: str = ""
    help: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class OperatorPlacement:
    """One operator of the model; `macs` of one inference, `cycles` as the compiler estimates."""

    index: int
    kind: str
    name: str
    region: Region
    macs: int
    cycles: int
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """Bytes of one kind of memory that the compiled network needs."""

    memory: str
    used_bytes: int


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Everything that is known about a compiled network.

    configuration  the configuration in force, JSON-ready
    arena_bytes    the runtime's tensor arena
    flash_bytes    the artifact's file
    memories       peak use by kind of memory, as the compiler counts it
    cycles         estimated cycles of one inference on the NPU
    origins        per NPU operator: byte offset of a command to the model's operator
    diagnostics    what happened on the way
    """

    model: str
    configuration: dict[str, Any]
    compiler: str
    placements: tuple[OperatorPlacement, ...]
    arena_bytes: int
    flash_bytes: int
    memories: tuple[Measure, ...]
    cycles: int
    origins: tuple[dict[int, Origin], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    log: str = field(default="", repr=False)

    @property
    def on_npu(self) -> tuple[OperatorPlacement, ...]:
        """Operators on the NPU."""
        return tuple(row for row in self.placements if row.region is Region.NPU)

    @property
    def on_cpu(self) -> tuple[OperatorPlacement, ...]:
        """Operators on the CPU."""
        return tuple(row for row in self.placements if row.region is Region.CPU)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(row.macs for row in self.placements)

    @property
    def macs_on_npu(self) -> int:
        """Multiply-accumulates on the NPU."""
        return sum(row.macs for row in self.on_npu)
