"""A board's file with what was measured of its memories, inheriting all else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mizzen.boards.board import Measured, MeasuredMemory
from mizzen.boards.inheriting import INHERITS

ODD = re.compile(r"[^A-Za-z0-9_ .,:+\-/()]")
"""What no text of the file has: names of files are strangers' texts."""
LONGEST_NAME, LONGEST_TITLE, LONGEST_LINE = 64, 100, 4096
"""Letters that a board's file may have. Ref: `mizzen.documents.model`, `Word`, `Title`, `Line`."""


def measured_file(parent: str, name: str, title: str, measured: Measured) -> str:
    """Return the text of a board's file, as `find_board` reads it.

    parent  the board whose other keys it takes over: a name, or a path as seen from the file
    name    of the board; what a name cannot have becomes ``_``
    """
    lines = [
        f"{INHERITS} = {json.dumps(parent, ensure_ascii=False)}",
        f'name = "{_name(name)}"',
        f'title = "{title[:LONGEST_TITLE]}"',
        "",
        "[measured]",
        f'accelerator = "{measured.accelerator}"',
        f'system_config = "{measured.system_config}"',
        f'source = "{ODD.sub("?", measured.source)[:LONGEST_LINE]}"',
    ]
    for memory in measured.memories:
        lines += ["", "[[measured.memory]]", *_memory(memory)]
    return "\n".join(lines) + "\n"


def _name(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", text)[:LONGEST_NAME]
    return plain if plain[:1].isalnum() else f"board{plain}"[:LONGEST_NAME]


def _memory(memory: MeasuredMemory) -> Iterator[str]:
    yield f'name = "{memory.name}"'
    yield f"bytes_per_cycle = {memory.bytes_per_cycle:.4g}"
    yield f"read_latency_cycles = {memory.read_latency_cycles}"
    yield f"write_latency_cycles = {memory.write_latency_cycles}"
    if memory.rate_error is not None:
        yield f"bytes_per_cycle_error = {memory.rate_error:.2f}"
    if memory.latency_error is not None:
        yield f"latency_error = {memory.latency_error:.2f}"
