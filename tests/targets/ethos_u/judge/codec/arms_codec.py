"""Arm's codec for streams that may be damaged: it ends its process over one that is."""

from __future__ import annotations

import multiprocessing
import os
from importlib import import_module
from multiprocessing.connection import Connection

import numpy as np
import numpy.typing as npt
import pytest

CODEC = "ethosu.mlw_codec"
SECONDS = 30


def codec_or_skip() -> None:
    """Skip the test where the codec is not installed."""
    pytest.importorskip(CODEC, reason="Vela, whose codec is compared with, is not installed")


def encoded(weights: npt.NDArray[np.int16]) -> bytes:
    """Return the stream that Arm's encoder makes of weights in their order."""
    return bytes(import_module(CODEC).encode(weights.tolist()))


def decoded(stream: bytes) -> npt.NDArray[np.int16] | None:
    """Return what Arm's decoder makes of a stream; None if it ended over it."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_decode, args=(stream, there))
    process.start()
    there.close()
    try:
        assert here.poll(SECONDS), "the codec hangs"
        return np.frombuffer(here.recv_bytes(), np.int16)
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        here.close()


def _decode(stream: bytes, pipe: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    weights = import_module(CODEC).decode(bytearray(stream))
    pipe.send_bytes(np.array(weights, np.int16).tobytes())
