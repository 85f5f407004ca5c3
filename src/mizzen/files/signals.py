"""The signals that end a process from outside, and the moments at which they must wait."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Those that can be heeded, where the system has them."""


@contextmanager
def held() -> Generator[None]:
    """Let them wait while the block runs: some renames, which are done in no time."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
