"""Names that would do something where they are shown or written, and networks that have them."""

from __future__ import annotations

import re
from collections.abc import Callable

from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA

FORGED = "error[E999]: forged"
NAMES = (
    "\x1b]0;title\x07\x1b[2J\x1b[31mred",
    "\x9b31mC1, without ESC\x85next\x90dcs\x9c",
    "back\x08\x08\x08\x7fspace, \rover the line",
    f"line\n{FORGED}\n  help none",
    f"line\r\n{FORGED}\u2028{FORGED}\u2029{FORGED}\x0b{FORGED}\x0c{FORGED}",
    "\u202egnp.exe\u2066isolated\u2069\u200emarks\u200f",
    "zero\u200bwidth\u2060joined\ufeff\u00adsoft",
    "=HYPERLINK(0)", "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "  =1",
    "| cell | `code` | <b>bold</b> <script>alert(1)</script> [link](http://x) ![i](http://x)",
    '"*/ $(touch x) `touch x` ${x} \\ ??/ ; # %s {{7*7}} {% raw %} \'',
    "::error file=x::workflow command",
    "long" * 250_000,
    "a word " * 150_000,
)  # fmt: skip

STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u00ad\ud800-\udfff]"
)
"""What must never reach a terminal; ends of lines are our own."""


def renamed(data: bytes, name: Callable[[int, str], str]) -> bytes:
    """Return a network whose tensors have other names: each by its index and its name."""
    record = read(data, SCHEMA, "network")
    for graph in record["subgraphs"]:
        for index, tensor in enumerate(graph["tensors"]):
            tensor["name"] = name(index, tensor["name"])
    return write(record, SCHEMA)


def hostile(data: bytes) -> bytes:
    """Return a network whose tensors have all these names, each twice if there are so many."""
    return renamed(data, lambda index, _: NAMES[index % len(NAMES)])
