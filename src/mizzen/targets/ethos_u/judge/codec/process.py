"""Decodes weight streams; run as a script, in a process of its own.

The codec ends its process when a stream is damaged, so it never runs in the user's. The script
answers requests on standard input until that closes. A request is a stream after its length
(uint64), the answer its weights (int16) after their count.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from array import array
from collections.abc import Callable
from importlib import import_module

ADDRESS_SPACE_BYTES = 8 << 30
"""Bounds what a damaged stream can make the codec allocate."""


def decoder() -> Callable[[bytes], bytes]:
    """Return a function that decodes a stream to the bytes of its weights.

    The codec's function in C, where its library shows it: the one for Python makes an object of
    each weight, and takes four times as long.
    """
    codec = import_module("ethosu.mlw_codec")
    decode: Callable[[bytearray], list[int]] = codec.decode
    try:
        library = ctypes.CDLL(str(codec.__file__))
        native, free = library.mlw_decode, library.mlw_free_outbuf
    except (OSError, AttributeError):
        return lambda stream: array("h", decode(bytearray(stream))).tobytes()
    weights = ctypes.POINTER(ctypes.c_int16)
    native.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(weights), ctypes.c_int]
    free.argtypes = [weights]

    def in_c(stream: bytes) -> bytes:
        held = weights()
        count = native(stream, len(stream), ctypes.byref(held), 0)
        if count < 0:
            raise SystemExit(1)
        made = ctypes.string_at(held, 2 * count) if count else b""
        free(held)
        return made

    return in_c


def main() -> None:
    """Answer requests until there are no more."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = ADDRESS_SPACE_BYTES if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_AS, (min(ADDRESS_SPACE_BYTES, allowed), hard))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the codec prints must not mix with the answers
    decode = decoder()
    requests = sys.stdin.buffer
    while head := requests.read(8):
        (length,) = struct.unpack("<Q", head)
        weights = decode(requests.read(length))
        answers.write(struct.pack("<Q", len(weights) // 2) + weights)
        answers.flush()


if __name__ == "__main__":
    main()
