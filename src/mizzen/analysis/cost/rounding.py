"""Whole cycles of fractions whose sums stay what they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def whole_steps(values: Iterable[float]) -> list[int]:
    """Round values so that each sum from the first on is the rounded sum."""
    found: list[int] = []
    total, before = 0.0, 0
    for value in values:
        total += value
        found.append(round(total) - before)
        before = round(total)
    return found


def whole_parts(parts: Mapping[Key, float], total: int) -> dict[Key, int]:
    """Round parts so that they add up to `total`; the greatest remainders are rounded up."""
    whole = sum(parts.values())
    if not whole:
        return {}
    exact = {key: value * total / whole for key, value in parts.items()}
    found = {key: int(value) for key, value in exact.items()}
    rest = total - sum(found.values())
    for key in sorted(exact, key=lambda key: found[key] - exact[key])[:rest]:
        found[key] += 1
    return {key: value for key, value in found.items() if value}
