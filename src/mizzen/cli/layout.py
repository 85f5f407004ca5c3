"""How numbers, names and tables are written for people: aligned columns of plain text.

Cells and paragraphs may be names from a file, so each is one line, escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mizzen.escaping import one_line
from mizzen.report.words import (
    conversions,
    count,
    duration,
    exact_size,
    inference,
    inference_energy,
    per_second,
    shape,
    share,
    short_name,
    size,
)

__all__ = [
    "conversions",
    "count",
    "duration",
    "exact_size",
    "fields",
    "inference",
    "inference_energy",
    "paragraph",
    "per_second",
    "read_size",
    "shape",
    "share",
    "size",
    "table",
]

GAP = "  "
NARROWEST_LAST_COLUMN = 24

SIZE_UNITS = {"k": 1024, "kb": 1024, "kib": 1024, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20}


def read_size(text: str) -> int:
    """Read bytes as people write memory: `393216`, `384K`, `384KiB`, `2M`; all powers of two."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(digits) :].lower()
    if not digits.isdecimal() or unit not in {"", "b", *SIZE_UNITS}:
        raise ValueError(text)
    return int(digits) * SIZE_UNITS.get(unit, 1)


def paragraph(text: str, *, width: int, indent: str) -> str:
    """Wrap a text, every line indented."""
    return textwrap.fill(
        one_line(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def fields(rows: Sequence[tuple[str, str]], *, width: int, indent: str = GAP) -> str:
    """Write names and values in two columns; a long value is wrapped in its column."""
    return table(rows, width=width, indent=indent)


def table(
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    headings: Sequence[str] = (),
    right: Sequence[int] = (),
    indent: str = GAP,
) -> str:
    """Write rows in aligned columns; the last one is wrapped to `width`.

    `right` has the columns of numbers, which are aligned to the right.
    """
    given = [headings, *rows] if headings else rows
    lines = [[one_line(cell) for cell in line] for line in given]
    if not lines:
        return ""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
    before = len(indent) + sum(column + len(GAP) for column in widths)
    last_width = max(width - before, NARROWEST_LAST_COLUMN)
    text: list[str] = []
    for line in lines:
        cells = [
            cell.rjust(column) if i in right else cell.ljust(column)
            for i, (cell, column) in enumerate(zip(line, widths, strict=False))
        ]
        start = indent + "".join(cell + GAP for cell in cells)
        wrapped = textwrap.wrap(line[-1], last_width, break_on_hyphens=False) or [""]
        text.append((start + wrapped[0]).rstrip())
        text += [" " * before + rest for rest in wrapped[1:]]
    return "\n".join(text)


def named_table(
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    width: int,
    headings: Sequence[str],
    right: Sequence[int] = (),
) -> str:
    """Write rows in aligned columns and after each a name, in what room there is in its line.

    `headings` end with that of the names.
    """
    widths = [max(map(len, column)) for column in zip(headings[:-1], *rows, strict=True)]
    room = width - len(GAP) - sum(len(GAP) + column for column in widths)
    room = max(room, NARROWEST_LAST_COLUMN)
    lines = [(*line, name_in(name, room)) for line, name in zip(rows, names, strict=True)]
    return table(lines, width=width, headings=headings, right=right)


def name_in(name: str, room: int) -> str:
    """Return a name in `room` letters: all of what a converter joined, else the first of them.

    Of a name that is longer all the same, the end: there such names differ.
    """
    whole = one_line(name)
    if len(whole) <= room:
        return whole
    short = one_line(short_name(name))
    return short if len(short) <= room else f"...{short[3 - room :]}"
