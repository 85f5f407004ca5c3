"""Texts of C: integers, constant arrays, and the names of arrays that are the same."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mizzen.graph import Array

COLUMNS = 96
INT32_LEAST, INT32_GREATEST = -(1 << 31), (1 << 31) - 1


def integer(value: int) -> str:
    """Return a signed integer as C has it."""
    if INT32_LEAST < value <= INT32_GREATEST:
        return str(value)
    if value == INT32_LEAST:
        return "(-2147483647 - 1)"
    return f"INT64_C({value})"


def count(value: int) -> str:
    """Return an unsigned integer as C has it."""
    return f"{value}u"


def braced(values: Iterable[int]) -> str:
    """Return unsigned integers as an initialiser."""
    return "{" + ", ".join(map(count, values)) + "}"


def lines_of(words: Iterable[str]) -> str:
    """Return words separated by commas, in lines of a source's width."""
    lines, line = list[str](), "   "
    for word in words:
        if len(line) + len(word) + 2 > COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, line])


class Constants:
    """Constant arrays of a source, each once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, bytes], str] = {}
        self.definitions: list[str] = []

    def name(self, array: Array) -> str:
        """Return the name of an array of integers or truth values, flat."""
        flat = np.ascontiguousarray(array).reshape(-1)
        held = flat.astype(np.uint8) if flat.dtype == np.bool_ else flat
        key = held.dtype.name, held.tobytes()
        if key not in self._names:
            name = self._names[key] = f"k{len(self._names)}"
            lines = lines_of(map(integer, held.tolist()))
            declared = f"{held.dtype.name}_t {name}[{len(held)}]"
            self.definitions.append(f"ELEMENT_CONSTANT static const {declared} = {{\n{lines}\n}};")
        return self._names[key]
