"""How numbers, names and tables are written for people: aligned columns of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

GAP = "  "
NARROWEST_LAST_COLUMN = 24

SIZE_UNITS = {"k": 1024, "kb": 1024, "kib": 1024, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20}


def size(size_bytes: int) -> str:
    """Write bytes as people read memory: `768 bytes`, `22.5 KiB`, `3.20 MiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    if size_bytes < 1024 * 1024:
        return f"{size_bytes / 1024:.1f} KiB"
    return f"{size_bytes / (1024 * 1024):.2f} MiB"


def exact_size(size_bytes: int) -> str:
    """Write bytes as people read memory, and each of them: `22.5 KiB (23,040 bytes)`."""
    return size(size_bytes) if size_bytes < 1024 else f"{size(size_bytes)} ({size_bytes:,} bytes)"


def read_size(text: str) -> int:
    """Read bytes as people write memory: `393216`, `384K`, `384KiB`, `2M`; all powers of two."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(digits) :].lower()
    if not digits.isdecimal() or unit not in {"", "b", *SIZE_UNITS}:
        raise ValueError(text)
    return int(digits) * SIZE_UNITS.get(unit, 1)


def share(part: int, whole: int) -> str:
    """Write a part of a whole in percent; only all of it is `100 %`, only nothing is `0 %`."""
    if part == whole:
        return "100 %"
    if part == 0:
        return "0 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def count(number: int, noun: str) -> str:
    """Write a number with its noun: `1 operator`, `1,024 operators`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Write a time with three digits and the unit that suits it."""
    for unit, in_seconds in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= in_seconds:
            return f"{seconds / in_seconds:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def shape(dimensions: Sequence[int]) -> str:
    """Write a shape: `[1, 49, 10, 1]`."""
    return f"[{', '.join(str(dimension) for dimension in dimensions)}]"


def paragraph(text: str, *, width: int, indent: str) -> str:
    """Wrap a text, every line indented."""
    return textwrap.fill(
        text,
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
    lines = [headings, *rows] if headings else list(rows)
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
