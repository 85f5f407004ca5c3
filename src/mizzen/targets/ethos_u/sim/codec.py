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
from struct import pack, unpack
from typing import IO

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

    def decode(self, stream: bytes) -> Weights | None:
        """Decode one stream; None if that ended the worker."""
        watchdog = threading.Timer(TIME_LIMIT_SECONDS, self._stop)
        watchdog.start()
        try:
            return self._exchange(stream)
        except BrokenPipeError:
            return None
        finally:
            watchdog.cancel()

    def _exchange(self, stream: bytes) -> Weights | None:
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None
        assert answers is not None
        rest = memoryview(pack("<Q", len(stream)) + stream)
        while rest:
            rest = rest[requests.write(rest) :]
        head = _exactly(answers, 8)
        if head is None:
            return None
        weights = _exactly(answers, 2 * unpack("<Q", head)[0])
        return None if weights is None else np.frombuffer(weights, np.int16)

    def _stop(self) -> None:
        self.is_late = True
        self.process.kill()

    def end(self) -> int:
        """End the worker and return its exit status, its own if it is about to end."""
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
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.returncode = 0  # not to be waited for: it is no child of this process


def _exactly(stream: IO[bytes], size: int) -> bytes | None:
    """Read so much, which may come in parts; None if it ends before."""
    parts: list[bytes] = []
    while size > 0:
        part = stream.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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
