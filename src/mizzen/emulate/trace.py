"""What happened on the NPU's bus, in order: accesses of registers, and edges of the interrupt."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mizzen.emulate.device import NpuDevice

KEPT_ROWS = 100_000
"""Later accesses are only counted."""


@dataclass(frozen=True, slots=True)
class BusRow:
    """One access, or as many of the same one after the other as `count` says.

    access  ``read``, ``write``, or ``irq`` for the interrupt line, whose value is its level
    """

    access: str
    register: str
    offset: int
    value: int
    count: int = 1

    def as_dict(self) -> dict[str, object]:
        """Return the row as JSON-ready data."""
        return {
            "access": self.access,
            "register": self.register,
            "offset": self.offset,
            "value": self.value,
            "count": self.count,
        }


class NpuBus:
    """The NPU on the bus: accesses go through, and are written down."""

    def __init__(self, device: NpuDevice) -> None:
        self.device = device
        self.rows: list[BusRow] = []
        self.left_out = 0
        self._level = False

    def read(self, offset: int, size_bytes: int) -> int:
        """Return the value that a load reads."""
        value = self.device.read(offset, size_bytes)
        self._note(BusRow("read", self.device.name(offset), offset, value))
        self.settle()
        return value

    def write(self, offset: int, value: int, size_bytes: int) -> None:
        """Do what a store does."""
        self._note(BusRow("write", self.device.name(offset), offset, value))
        self.device.write(offset, value, size_bytes)
        self.settle()

    def settle(self) -> None:
        """Write down a change of the interrupt line."""
        if self.device.irq != self._level:
            self._level = self.device.irq
            self._note(BusRow("irq", "IRQ", 0, int(self._level)))

    def _note(self, event: BusRow) -> None:
        if self.rows:
            last = self.rows[-1]
            if replace(last, count=1) == event:
                self.rows[-1] = replace(last, count=last.count + 1)
                return
        if len(self.rows) < KEPT_ROWS:
            self.rows.append(event)
        else:
            self.left_out += 1
