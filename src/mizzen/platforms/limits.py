"""Bounds of a worker's time, memory and printing, and how a process ended.

Linux has all of them. macOS may refuse the bound of memory. Windows has no resource limits and no
alarm: a thread ends the process there, which waits for code that holds the interpreter's lock.

Ref: setrlimit(2), setitimer(2).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading

HAS_ALARM = hasattr(signal, "setitimer")
TIMED_OUT = -signal.SIGALRM if HAS_ALARM else 124
"""The exit status of a process that `limit_time` ended; 124 is what `timeout(1)` says."""

FROM_OUTSIDE = frozenset(
    -getattr(signal, name) for name in ("SIGTERM", "SIGKILL") if hasattr(signal, name)
)
"""Statuses of signals that no code of a process raises: another process, or the system, does."""

NTSTATUS = 1 << 30
"""Windows' own statuses, such as 0xC0000005 of a wrong address, are larger."""


def limit_resources(memory_bytes: int, printed_bytes: int) -> None:
    """Bound what this process may allocate and write to a file, as far as the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, printed_bytes),
        (resource.RLIMIT_CORE, 0),
    )
    for what, most in limits:
        _, hard = resource.getrlimit(what)
        bounded = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS knows no limit of addresses
            resource.setrlimit(what, (bounded, hard))


class _Watch:
    """The thread that ends this process in time, where there is no alarm."""

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None

    def set(self, seconds: float) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if seconds:
            self.timer = threading.Timer(seconds, os._exit, (TIMED_OUT,))
            self.timer.daemon = True
            self.timer.start()


_watch = _Watch()


def limit_time(seconds: float) -> None:
    """End this process, wherever it is, after so many seconds; 0 for never."""
    if HAS_ALARM:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    else:
        _watch.set(seconds)


def how_ended(status: int) -> str:
    """Return what a process's exit status says, in a few words."""
    if -status in set(signal.Signals):
        return signal.Signals(-status).name
    return f"status {status:#010x}" if status >= NTSTATUS else f"status {status}"
