"""Files that the command line names."""

from __future__ import annotations

from pathlib import Path

from mizzen.diagnostics import fail


def read_file(path: Path) -> bytes:
    """Return a file's contents. E110 if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise fail("E110", f"{path} must be a file that can be read: {reason}") from None
