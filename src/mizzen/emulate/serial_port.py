"""Serial ports: what is written to the data register goes to the console, and no byte comes in.

Ref: Arm Cortex-M System Design Kit TRM (DDI0479), APB UART; Arm PrimeCell UART (PL011) TRM
(DDI0183), registers.
"""

from __future__ import annotations

from mizzen.boards import UartKind
from mizzen.emulate.console import Console

DATA = 0x00
READY: dict[UartKind, dict[int, int]] = {
    UartKind.CMSDK: {0x04: 0},
    UartKind.PL011: {0x18: 0x90},
}
"""Registers whose value is fixed: nothing received, room to send."""


class SerialPort:
    """One port; everything but data and state is kept."""

    def __init__(self, kind: UartKind, console: Console) -> None:
        self._fixed = READY[kind]
        self._console = console
        self._kept: dict[int, int] = {}

    def read(self, offset: int) -> int:
        """Return the value that a load reads."""
        if offset == DATA:
            return 0
        return self._fixed.get(offset, self._kept.get(offset, 0))

    def write(self, offset: int, value: int) -> None:
        """Do what a store does."""
        if offset == DATA:
            self._console.write(bytes([value & 0xFF]))
        else:
            self._kept[offset] = value
