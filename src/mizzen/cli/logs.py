"""Logs as verbs take them: files, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from mizzen.cli.configuration import read_file
from mizzen.diagnostics import fail

FROM_STDIN = "-"


def log_bytes(name: str) -> bytes:
    """Return what a log's file has. E110 for one that cannot be read."""
    return sys.stdin.buffer.read() if name == FROM_STDIN else read_file(Path(name))


def log_text(name: str) -> str:
    """Read a log. E475 for one that has no text at all."""
    from mizzen.analysis.log_text import decode_log

    text = decode_log(log_bytes(name))
    if not text.strip():
        raise fail(
            "E475",
            f"a log must have text, and {name} has none",
            help="give what the firmware wrote",
        )
    return text
