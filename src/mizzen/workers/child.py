"""Child processes that end with this one, however this one ends.

A process that is killed tells its children nothing, but the kernel closes its end of a pipe. The
child holds the other end, and is sent SIGKILL then, whatever it is busy with and whatever program
it is. The parent-death signal would come when the thread that started the child ends, and a worker
serves many threads. Where the kernel cannot do so, a child ends when it next reads its input.

Ref: fcntl(2), "I/O availability signals": O_ASYNC, F_SETSIG, F_SETOWN; PR_SET_PDEATHSIG(2const),
"Caveats".
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO

IS_TOLD = sys.platform == "linux" and find_spec("fcntl") is not None
"""Whether the kernel tells a process of the other end of its pipe."""


class _End:
    """This process's end of a pipe to a child."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        """Close it, once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)


_ends: weakref.WeakSet[_End] = weakref.WeakSet()


def _let_go() -> None:
    """Close all in a forked process: the children are its parent's, and end with that."""
    for end in list(_ends):
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class Child(subprocess.Popen[bytes]):
    """A process that ends when this one has ended, or has forgotten it."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        bufsize: int = -1,
    ) -> None:
        theirs, ours = os.pipe()
        self._end = _End(ours)
        _ends.add(self._end)
        try:
            self._ask_for_signal(theirs)
            super().__init__(
                words,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                bufsize=bufsize,
                pass_fds=(theirs,) if IS_TOLD else (),
            )
            self._address(theirs)
        finally:
            os.close(theirs)

    def __del__(self) -> None:
        """Let it end: nothing here can reach it any more."""
        if hasattr(self, "_end"):
            self._end.close()
        super().__del__()

    @staticmethod
    def _ask_for_signal(theirs: int) -> None:
        """Let what happens to the pipe send SIGKILL; the child inherits that with its end."""
        if IS_TOLD:
            import fcntl  # not on every system

            fcntl.fcntl(theirs, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(theirs, fcntl.F_SETFL, os.O_ASYNC)

    def _address(self, theirs: int) -> None:
        """Send it to the child. Until then, a child that waits for its input ends without."""
        if IS_TOLD:
            import fcntl

            fcntl.fcntl(theirs, fcntl.F_SETOWN, self.pid)
