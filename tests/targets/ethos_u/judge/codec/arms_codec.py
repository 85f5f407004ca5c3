"""Arm's codec for streams that may be damaged: it ends its process over one that is.

It runs in forks of a process of its own, which has nothing else in it: a fork of this one that ends
so would run what other packages do at their end, and wait for threads that it does not have.
"""

from __future__ import annotations

import selectors
import struct
import subprocess
import sys
from functools import cache
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pytest

CODEC = "ethosu.mlw_codec"
SECONDS = 30
ENDED = 0xFFFFFFFF
"""Said for a stream over which the codec ended its process."""

SERVER = f"""
import os, struct, sys
from array import array
from ethosu import mlw_codec

quiet, answers = os.open(os.devnull, os.O_WRONLY), os.dup(1)
os.dup2(quiet, 1)
os.dup2(quiet, 2)
while head := sys.stdin.buffer.read(4):
    stream = bytearray(sys.stdin.buffer.read(*struct.unpack("<I", head)))
    given, taken = os.pipe()
    if not (child := os.fork()):
        with os.fdopen(taken, "wb") as pipe:
            pipe.write(array("h", mlw_codec.decode(stream)).tobytes())
        os._exit(0)
    os.close(taken)
    with os.fdopen(given, "rb") as pipe:
        weights = pipe.read()
    _, status = os.waitpid(child, 0)
    answer = struct.pack("<I", {ENDED} if status else len(weights)) + (b"" if status else weights)
    with os.fdopen(os.dup(answers), "wb") as pipe:
        pipe.write(answer)
"""


def codec_or_skip() -> None:
    """Skip the test where the codec is not installed."""
    pytest.importorskip(CODEC, reason="Vela, whose codec is compared with, is not installed")


def encoded(weights: npt.NDArray[np.int16]) -> bytes:
    """Return the stream that Arm's encoder makes of weights in their order."""
    return bytes(import_module(CODEC).encode(weights.tolist()))


def decoded(stream: bytes) -> npt.NDArray[np.int16] | None:
    """Return what Arm's decoder makes of a stream; None if it ended over it."""
    server = _server()
    given, answers = server.stdin, server.stdout
    assert given is not None
    assert answers is not None
    given.write(struct.pack("<I", len(stream)) + stream)
    given.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(answers, selectors.EVENT_READ)
        assert selector.select(SECONDS), "the codec hangs"
    (count,) = struct.unpack("<I", answers.read(4))
    return None if count == ENDED else np.frombuffer(answers.read(count), np.int16)


@cache
def _server() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
