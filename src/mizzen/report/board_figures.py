"""What a board says of the time and energy of an inference, beside the system configuration."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.report.energy import EnergyFigure


@dataclass(frozen=True, slots=True)
class BoardFigures:
    """The clocks, the processor and the energies that an artifact's time and energy are told with.

    board               its name; empty where only a clock was asked for
    clock_hz            of the NPU; 0 for the system configuration's
    processor           the core of the CPU, as ``cortex-m55``; empty where none is named
    processor_clock_hz  of that core; 0 for the NPU's
    energy              empty where no figure has a source
    """

    board: str = ""
    clock_hz: float = 0.0
    processor: str = ""
    processor_clock_hz: float = 0.0
    energy: tuple[EnergyFigure, ...] = ()
