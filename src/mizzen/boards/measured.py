"""A board's file with what was measured of its memories, inheriting all else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mizzen.boards.board import Measured, MeasuredMemory
from mizzen.boards.inheriting import INHERITS

PLAIN = re.compile(r"[^A-Za-z0-9_ .,:+\-/()]")
"""What no text of the file has: names of files are strangers' texts."""


def measured_file(parent: str, name: str, title: str, measured: Measured) -> str:
    """Return the text of a board's file, as `find_board` reads it.

    parent  the board whose other keys it takes over: a name, or a path as seen from the file
    """
    lines = [
        f'{INHERITS} = "{parent}"',
        f'name = "{name}"',
        f'title = "{title}"',
        "",
        "[measured]",
        f'accelerator = "{measured.accelerator}"',
        f'system_config = "{measured.system_config}"',
        f'source = "{PLAIN.sub("?", measured.source)}"',
    ]
    for memory in measured.memories:
        lines += ["", "[[measured.memory]]", *_memory(memory)]
    return "\n".join(lines) + "\n"


def _memory(memory: MeasuredMemory) -> Iterator[str]:
    yield f'name = "{memory.name}"'
    yield f"bytes_per_cycle = {memory.bytes_per_cycle:.4g}"
    yield f"read_latency_cycles = {memory.read_latency_cycles}"
    yield f"write_latency_cycles = {memory.write_latency_cycles}"
    if memory.rate_error is not None:
        yield f"bytes_per_cycle_error = {memory.rate_error:.2f}"
    if memory.latency_error is not None:
        yield f"latency_error = {memory.latency_error:.2f}"
