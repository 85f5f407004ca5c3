"""The signals that end a process from outside, and the moments at which they must wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Those that can be heeded, where the system has them."""


class _Held:
    """What the main thread is in, as Python calls handlers there alone."""

    def __init__(self) -> None:
        self.blocks = 0
        self.waiting: BaseException | None = None


_main = _Held()


@contextmanager
def held() -> Generator[None]:
    """Let them wait while the block runs: some renames, which are done in no time.

    The system may give a signal that one thread blocks to another, and Python has its handler
    called in the main thread all the same. So handlers ask `must_wait` too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _main.blocks += 1
    try:
        with _blocked():
            yield
    finally:
        _main.blocks -= 1
        if not _main.blocks and _main.waiting is not None:
            error, _main.waiting = _main.waiting, None
            raise error


def must_wait(error: BaseException) -> bool:
    """Whether a handler must not raise now what it wants to: then it is raised after the block."""
    if _main.blocks:
        _main.waiting = error
    return bool(_main.blocks)


@contextmanager
def _blocked() -> Generator[None]:
    """Keep signals from this thread, also where handlers are another program's."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
