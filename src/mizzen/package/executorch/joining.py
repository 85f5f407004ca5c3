"""A program with the data that ExecuTorch keeps in files beside it, `.ptd`: as one `.pte`.

Tensors and blocks of delegates name what they need. A program that has it among its own named data
means the same, and is whole wherever it goes.
"""

from __future__ import annotations

from collections.abc import Mapping

from mizzen.flatbuffer.pte import PteFile, join, split
from mizzen.package.executorch import reading, vela_bin
from mizzen.package.executorch.vela_bin import BACKENDS


def keys_elsewhere(data: bytes, name: str) -> frozenset[str]:
    """Return the names of the data that a program needs and has not. Raises as `reading.read`."""
    missing, delegates = reading.references(data, name)
    of_blocks = (
        key
        for place, delegate in enumerate(delegates)
        if delegate.backend in BACKENDS
        for key in vela_bin.external_keys(delegate.payload, f"{name}: delegate {place}")
    )
    has = {entry["key"] or "" for entry in split(data, name).program["named_data"] or ()}
    return missing | (frozenset(of_blocks) - has)


def with_data(data: bytes, name: str, contents: Mapping[str, bytes]) -> bytes:
    """Return the program with more data among its own, by name. Raises as `reading.read`."""
    file = split(data, name)
    first = len(file.segments)
    named = [{"key": key, "segment_index": first + place} for place, key in enumerate(contents)]
    program = {**file.program, "named_data": [*(file.program["named_data"] or ()), *named]}
    return join(PteFile(program, (*file.segments, *contents.values())))
