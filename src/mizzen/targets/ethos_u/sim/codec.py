"""Decompress weight streams, in a worker process that damaged streams may end.

One worker serves the whole session; it starts with the first stream and again after each one that
ended it.
"""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from struct import pack, unpack

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail

SCRIPT = Path(__file__).with_name("codec_process.py")
TIME_LIMIT_SECONDS = 60
"""A stream that takes longer to decode is damaged: whole ones need well under a second."""

Weights = npt.NDArray[np.int16]


class _Worker:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def decode(self, stream: bytes) -> Weights | None:
        """Decode one stream; None if that ended the worker."""
        watchdog = threading.Timer(TIME_LIMIT_SECONDS, self.process.kill)
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
        requests.write(pack("<Q", len(stream)) + stream)
        requests.flush()
        head = answers.read(8)
        if len(head) < 8:
            return None
        length = 2 * unpack("<Q", head)[0]
        weights = answers.read(length)
        return np.frombuffer(weights, np.int16) if len(weights) == length else None

    def end(self) -> int:
        """End the worker and return its exit status."""
        self.process.kill()
        status = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return status


_lock = threading.Lock()
_workers: list[_Worker] = []


@atexit.register
def _end_workers() -> None:
    while _workers:
        _workers.pop().end()


def decode(streams: Sequence[bytes]) -> list[Weights]:
    """Decompress weight streams; each gives its weights in the stream's order.

    Values lie in -255..255: the compiler has already subtracted the weights' zero point. Raises
    E624 for a damaged stream.
    """
    with _lock:
        return [_decode(stream) for stream in streams]


def _decode(stream: bytes) -> Weights:
    if not _workers:
        _workers.append(_Worker())
    weights = _workers[0].decode(stream)
    if weights is None:
        raise _damaged(_workers.pop().end())
    return weights


def _damaged(status: int) -> MizzenError:
    return fail(
        "E624",
        f"a weight stream must be whole, and the codec ended with status {status} over this one",
        rule="compressed weight streams of Ethos-U",
        help="the artifact is damaged; compile it again",
    )
