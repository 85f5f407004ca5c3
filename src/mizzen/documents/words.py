"""What a model says must hold of a value, in words."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from mizzen.documents.model import Limits, Section

SHOWN_CHARACTERS = 60


def must_be(kind: Any, limits: Limits, place: Sequence[int | str]) -> str:
    """Return what a value at a place of a file must be."""
    if get_origin(kind) is Literal:
        values = ", ".join(map(str, get_args(kind)))
        return f"be one of {values}" if len(get_args(kind)) > 1 else f"be {values}"
    if get_origin(kind) is tuple:
        return "be a list of at least one" if limits.min_length == 1 else "be a list"
    if not isinstance(kind, type):
        return "be a table"
    if issubclass(kind, Enum):
        return f"be one of {', '.join(str(member.value) for member in kind)}"
    if issubclass(kind, Section):
        return _table(place)
    if kind is bool:
        return "be true or false"
    if kind is str:
        return "be a text"
    whole = kind is int
    ends = range_of(limits, whole=whole)
    if whole:
        return f"be a whole number of {ends}" if ends else "be a whole number"
    return f"be a number {ends}" if ends else "be a number"


def _table(place: Sequence[int | str]) -> str:
    if not place:
        return "be a table"
    last = place[-1]
    return f"be a table [{last}]" if isinstance(last, str) else f"be tables [[{place[-2]}]]"


def range_of(limits: Limits, *, whole: bool) -> str | None:
    """Return a range in words: of whole numbers its first and last, else as the type has it."""
    low = limits.gt if limits.ge is None else limits.ge
    high = limits.lt if limits.le is None else limits.le
    if low is None or high is None:
        return None
    if whole:
        return f"{low}..{high if limits.le is not None else high - 1}"
    upwards = f"from {low:g}" if limits.gt is None else f"above {low:g}"
    return f"{upwards} to {'' if limits.le is not None else 'below '}{high:g}"


def length(limits: Limits) -> str:
    """Return how many entries a list or a table must have."""
    least, most = limits.min_length, limits.max_length
    if least is not None and least == most:
        return f"have {most} numbers"
    return f"have at least {least}" if most is None else f"have at most {most} entries"


def cut(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
