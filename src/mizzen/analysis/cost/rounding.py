"""Whole cycles of fractions whose sums stay what they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def whole_steps(values: Iterable[float]) -> list[int]:
    """Round values so that each sum from the first on is the rounded sum."""
    steps: list[int] = []
    total, before = 0.0, 0
    for value in values:
        total += value
        steps.append(round(total) - before)
        before = round(total)
    return steps


def whole_parts(parts: Mapping[Key, float], total: int) -> dict[Key, int]:
    """Round parts so that they add up to `total`; the greatest remainders are rounded up."""
    whole = sum(parts.values())
    if not whole:
        return {}
    exact = {key: value * total / whole for key, value in parts.items()}
    rounded = {key: int(value) for key, value in exact.items()}
    rest = total - sum(rounded.values())
    for key in sorted(exact, key=lambda key: rounded[key] - exact[key])[:rest]:
        rounded[key] += 1
    return {key: value for key, value in rounded.items() if value}
