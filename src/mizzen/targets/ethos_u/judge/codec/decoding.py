"""Decompress weight streams, in a worker process that damaged streams may end.

One worker serves the whole process and all of its threads, one stream at a time; it starts with the
first stream and again after each one that ended it.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from struct import pack, unpack
from time import monotonic

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.workers import Worker, Workers

SCRIPT = Path(__file__).with_name("process.py")
TIME_LIMIT_SECONDS = 60
"""A stream that takes longer to decode is damaged: whole ones need well under a second."""
LATE = 1
"""The exit status of a worker that took too long, whatever ended it."""
FROM_OUTSIDE = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
"""Signals that no stream makes the codec raise: another process, or the system, sends them."""

Weights = npt.NDArray[np.int16]


class _Worker(Worker):
    def __init__(self) -> None:
        super().__init__(SCRIPT)
        self.is_late = False
        self._answers = DefaultSelector()
        self._answers.register(self.pipes[1], EVENT_READ)

    def decode(self, stream: bytes) -> Weights | None:
        """Decode one stream; None if that ended the worker."""
        try:
            return self._exchange(stream)
        except BrokenPipeError:
            return None

    def _exchange(self, stream: bytes) -> Weights | None:
        end = monotonic() + TIME_LIMIT_SECONDS
        rest = memoryview(pack("<Q", len(stream)) + stream)
        while rest:
            rest = rest[self.pipes[0].write(rest) :]
        head = self._exactly(8, end)
        if head is None:
            return None
        weights = self._exactly(2 * unpack("<Q", head)[0], end)
        return None if weights is None else np.frombuffer(weights, np.int16)

    def _exactly(self, size: int, end: float) -> bytes | None:
        """Read so much, which may come in parts; None if the worker ends, or is late, before."""
        parts: list[bytes] = []
        while size > 0:
            if not self._answers.select(end - monotonic()):
                self.is_late = True
                self.process.kill()
                return None
            part = self.pipes[1].read(size)
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._answers.close()
        super().close()


_workers = Workers[_Worker]()


def begin() -> None:
    """Start the worker, so that what will decode streams need not wait for it then."""
    with _workers.lock:
        if not _workers:
            _workers.append(_Worker())


def decode(streams: Sequence[bytes]) -> list[Weights]:
    """Decompress weight streams; each gives its weights in the stream's order.

    Values lie in -255..255: the compiler has already subtracted the weights' zero point. Raises
    E624 for a damaged stream.
    """
    with _workers.lock:
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
    begin()
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
