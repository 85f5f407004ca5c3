"""What a board's file takes over from another one, as `vela.ini` sections do.

A table replaces the keys that it has; what was measured is replaced whole. Of tables in lists, one
with the same name (a memory, a timing adapter), product (ports) or a memory mode in common replaces
the keys of the other board's, and others come after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from mizzen.diagnostics import fail

INHERITS = "inherits"
WHOLE = "measured"
"""A table whose keys are of one measurement."""
KEYS = {
    "memory": "name",
    "energy": "of",
    "timing_adapter": "name",
    "ports": "product",
    "memory_mode": "names",
    "other_npu": "products",
}
"""Tables in lists, and by which key each is known."""

Contents = Mapping[str, object]


def inherited(file: str, own: Contents, parent: Callable[[str], Contents]) -> dict[str, object]:
    """Return the contents of a file with what it inherits. E411 for a parent that is not text."""
    if INHERITS not in own:
        return dict(own)
    name = own[INHERITS]
    if not isinstance(name, str):
        raise fail("E411", f"{file}: {INHERITS} must be the name or the file of a board")
    merged = dict(parent(name))
    for key, value in own.items():
        if key != INHERITS:
            merged[key] = _over(key, merged.get(key), value)
    return merged


def _over(key: str, before: object, value: object) -> object:
    if key != WHOLE and isinstance(before, dict) and isinstance(value, dict):
        return {**cast("Contents", before), **cast("Contents", value)}
    if key in KEYS and isinstance(before, list) and isinstance(value, list):
        return _rows_over(KEYS[key], cast("list[object]", before), cast("list[object]", value))
    return value


def _rows_over(key: str, before: list[object], entries: list[object]) -> list[object]:
    merged = list(before)
    for entry in entries:
        place = next((i for i, old in enumerate(merged) if _are_one(key, old, entry)), None)
        if place is None:
            merged.append(entry)
        else:
            merged[place] = _over("", merged[place], entry)
    return merged


def _are_one(key: str, one: object, other: object) -> bool:
    """Whether two tables are of one thing: their names are equal, or have one in common."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    first, second = cast("Contents", one).get(key), cast("Contents", other).get(key)
    if isinstance(first, list) and isinstance(second, list):
        return any(name in cast("list[object]", second) for name in cast("list[object]", first))
    return first is not None and first == second
