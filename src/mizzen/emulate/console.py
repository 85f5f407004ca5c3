"""The firmware's console, whatever writes to it: kept up to a limit, and shown as it comes."""

from __future__ import annotations

from collections.abc import Callable

KEPT_BYTES = 1 << 20
"""A firmware that writes for ever must not take the host's memory."""


class Console:
    """What firmware wrote, as bytes; `on_text` hears each line when it is whole."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._kept = bytearray()
        self._line = bytearray()
        self._on_text = on_text

    @property
    def text(self) -> str:
        """All that was written and kept; bytes that are no UTF-8 are replaced."""
        return self._kept.decode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        """Take bytes."""
        self._kept += data[: KEPT_BYTES - len(self._kept)]
        if self._on_text is None:
            return
        self._line += data
        while b"\n" in self._line or len(self._line) > KEPT_BYTES:
            line, _, rest = self._line.partition(b"\n")
            self._line = bytearray(rest)
            self._on_text(line.decode("utf-8", "replace"))
