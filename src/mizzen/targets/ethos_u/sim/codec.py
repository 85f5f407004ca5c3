"""Decompress weight streams, in a worker process that damaged streams may end.

One worker serves the whole process and all of its threads, one stream at a time; it starts with the
first stream and again after each one that ended it. A process that is forked starts its own.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from struct import pack, unpack
from time import monotonic

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail

SCRIPT = Path(__file__).with_name("codec_process.py")
TIME_LIMIT_SECONDS = 60
"""A stream that takes longer to decode is damaged: whole ones need well under a second."""
LATE = 1
"""The exit status of a worker that took too long, whatever ended it."""
FROM_OUTSIDE = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
"""Signals that no stream makes the codec raise: another process, or the system, sends them."""

Weights = npt.NDArray[np.int16]


class _Worker:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # so that nothing is left in a buffer that a forked process would write
        )
        self.is_late = False
        self._answers = DefaultSelector()
        assert self.process.stdout is not None
        self._answers.register(self.process.stdout, EVENT_READ)

    def decode(self, stream: bytes) -> Weights | None:
        """Decode one stream; None if that ended the worker."""
        try:
            return self._exchange(stream)
        except BrokenPipeError:
            return None

    def _exchange(self, stream: bytes) -> Weights | None:
        requests = self.process.stdin
        assert requests is not None
        end = monotonic() + TIME_LIMIT_SECONDS
        rest = memoryview(pack("<Q", len(stream)) + stream)
        while rest:
            rest = rest[requests.write(rest) :]
        head = self._exactly(8, end)
        if head is None:
            return None
        weights = self._exactly(2 * unpack("<Q", head)[0], end)
        return None if weights is None else np.frombuffer(weights, np.int16)

    def _exactly(self, size: int, end: float) -> bytes | None:
        """Read so much, which may come in parts; None if the worker ends, or is late, before."""
        answers = self.process.stdout
        assert answers is not None
        parts: list[bytes] = []
        while size > 0:
            if not self._answers.select(end - monotonic()):
                self.is_late = True
                self.process.kill()
                return None
            part = answers.read(size)
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def end(self) -> int:
        """End the worker and return its exit status, its own if it is about to end."""
        self._answers.close()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def leave(self) -> None:
        """Let go of the worker in a forked process: it goes on to serve the parent."""
        self._answers.close()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.returncode = 0  # not to be waited for: it is no child of this process


class _Turns:
    """Threads take turns with the worker."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_turns = _Turns()
_workers: list[_Worker] = []


@atexit.register
def _end_workers() -> None:
    while _workers:
        _workers.pop().end()


def _begin_in_child() -> None:
    """Start anew after a fork: workers are the parent's, and so is whoever holds the lock."""
    _turns.lock = threading.Lock()
    while _workers:
        _workers.pop().leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def decode(streams: Sequence[bytes]) -> list[Weights]:
    """Decompress weight streams; each gives its weights in the stream's order.

    Values lie in -255..255: the compiler has already subtracted the weights' zero point. Raises
    E624 for a damaged stream.
    """
    with _turns.lock:
        return [_decode(stream) for stream in streams]


def _decode(stream: bytes) -> Weights:
    weights, status = _attempt(stream)
    if weights is None and -status in FROM_OUTSIDE:
        weights, status = _attempt(stream)
    if weights is None:
        raise _ended(status) if -status in FROM_OUTSIDE else _damaged(status)
    return weights


def _attempt(stream: bytes) -> tuple[Weights | None, int]:
    """Decode one stream; None and the worker's exit status if that ended the worker."""
    if not _workers:
        _workers.append(_Worker())
    worker = _workers[0]
    try:
        weights = worker.decode(stream)
    except BaseException:  # an interrupt leaves half a message behind
        worker.process.kill()
        _workers.pop().end()
        raise
    if weights is not None:
        return weights, 0
    status = _workers.pop().end()
    return None, LATE if worker.is_late else status


def _damaged(status: int) -> MizzenError:
    return fail(
        "E624",
        f"a weight stream must be whole, and the codec ended with status {status} over this one",
        rule="compressed weight streams of Ethos-U",
        help="the artifact is damaged; compile it again",
    )


def _ended(status: int) -> MizzenError:
    return fail(
        "E625",
        "the process that decodes weights must go on, but something ended it twice with "
        f"{signal.Signals(-status).name}",
        help="run it again; the system ends processes when memory is short",
    )
