"""Read a container back into its rows, as the runtime sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.package.c.layout import HEADER, MAGIC, TABLES, VERSION, WORD_BYTES

Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Container:
    """Rows of a container by table, and its pool of words."""

    data: bytes
    header: Values
    tables: Mapping[str, Sequence[Values]]
    pool: Sequence[int]

    def block(self, at: int, size_bytes: int) -> bytes:
        """Return bytes that are used in place. E461 if they are not all there."""
        if at + size_bytes > len(self.data):
            raise fail("E461", f"a container must hold bytes {at} to {at + size_bytes}")
        return self.data[at : at + size_bytes]


def decode(data: bytes) -> Container:
    """Return the rows of a container. E461 for another format, or one that ends too early."""
    header = HEADER.unpack(data, 0)
    if (header["magic"], header["version"], header["bytes"]) != (MAGIC, VERSION, len(data)):
        raise fail("E461", "a container must start with MZN1, its version and its own size")
    tables = {
        name: [
            table.unpack(data, header[f"{name}_at"] + place * table.size_bytes)
            for place in range(header[f"{name}_count"])
        ]
        for name, table in TABLES.items()
    }
    end = header["pool_at"] + WORD_BYTES * header["pool_count"]
    if end > len(data):
        raise fail("E461", "a container must hold all of its pool, and ends before")
    pool: Sequence[int] = np.frombuffer(data[header["pool_at"] : end], "<u4").tolist()
    return Container(data, header, tables, pool)
