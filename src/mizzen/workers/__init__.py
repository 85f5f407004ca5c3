"""Python processes that do for this one what may end a process: kernels and compilers of others.

A kernel that trusts a damaged file ends its process, loops, or writes anywhere; a user's program
must get an answer all the same. So a script of Mizzen's runs it, started once and asked again and
again over pipes, by one thread at a time. A process that is forked starts workers of its own: the
parent's go on to serve the parent. A `crew` is several that share a long work, here or on Ray. A
worker ends with its parent, however that ends (`child`).

It must not know what is asked, in which form, or what an end means to the caller.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TypeVar

from mizzen.platforms.pipes import unless_gone
from mizzen.workers.child import Child

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""No worker multiplies matrices, and threads for it are half of what NumPy takes to start."""


def use_one_thread() -> None:
    """Keep BLAS from starting threads: the small products of a simulator only make them wait.

    It counts for a NumPy that is not imported yet, and for the processes that this one starts;
    what the environment says already stays.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


class Worker:
    """A process that answers requests; what it prints goes to a file, or nowhere."""

    def __init__(self, script: Path, printed: int = subprocess.DEVNULL) -> None:
        self.process = Child(
            [sys.executable, "-P", str(script)],
            stderr=printed,
            env=os.environ | ONE_THREAD,
            bufsize=0,  # so that nothing is left in a buffer that a forked process would write
        )

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """Where requests go, and where answers come from."""
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None
        assert answers is not None
        return requests, answers

    def close(self) -> None:
        """Close what this process has open for the worker, which ends it once it reads on."""
        for pipe in self.pipes:
            with unless_gone():
                pipe.close()

    def end(self) -> int:
        """End the worker and return its exit status, its own if it is about to end."""
        requests, _ = self.pipes
        with unless_gone():
            requests.close()
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.close()

    def leave(self) -> None:
        """Let go of the worker in a forked process: it goes on to serve the parent."""
        self.close()
        self.process.returncode = 0  # not to be waited for: it is not a child of this process


AnyWorker = TypeVar("AnyWorker", bound=Worker)


class Workers(list[AnyWorker]):
    """The workers of one kind, one at most; who asks it holds `lock`."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()
        atexit.register(self.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)

    def end(self) -> None:
        """End all; the next request starts another."""
        while self:
            self.pop().end()

    def _begin_in_child(self) -> None:
        """Start anew after a fork: workers are the parent's, and so is what holds the lock."""
        self.lock = threading.RLock()
        while self:
            self.pop().leave()
