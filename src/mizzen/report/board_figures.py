"""What a board says of how long an inference takes, beside the system configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoardFigures:
    """The clocks and the processor that an artifact's time is told with.

    board               its name; empty where only a clock was asked for
    clock_hz            of the NPU; 0 for the system configuration's
    processor           the core of the CPU, as ``cortex-m55``; empty where none is named
    processor_clock_hz  of that core; 0 for the NPU's
    """

    board: str = ""
    clock_hz: float = 0.0
    processor: str = ""
    processor_clock_hz: float = 0.0
