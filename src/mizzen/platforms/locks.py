"""Locks on open files, which end with their process however that ends. Windows has none here.

Ref: flock(2).
"""

from __future__ import annotations

from importlib.util import find_spec

HAS_LOCKS = find_spec("fcntl") is not None


def locked(handle: int) -> bool:
    """Lock a file that no other process has locked; whether that is so now."""
    import fcntl  # not on Windows

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
