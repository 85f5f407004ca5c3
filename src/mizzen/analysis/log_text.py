"""The text of a log that a person recorded: decoded, and line by line.

A log is not trusted: any bytes are one, and of a line only so much is read.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

LONGEST_LINE = 1000
_STEERING = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_log(data: bytes) -> str:
    """Return the text of a log, whatever bytes are in it.

    UTF-16, which PowerShell writes, is known by its byte order mark, or by zeros in every second
    byte; all else is UTF-8.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    begin = data[:LONGEST_LINE]
    half = len(begin) // 2
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if begin[first::2].count(0) > half // 2 and begin[1 - first :: 2].count(0) <= half // 4:
            return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines by number, from 1, without colours and cut at `LONGEST_LINE`."""
    for number, whole in enumerate(text.splitlines(), 1):
        yield number, _STEERING.sub("", whole)[:LONGEST_LINE]
