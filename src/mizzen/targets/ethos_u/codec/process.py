"""Decodes weight streams; run as a script, in a process of its own.

The codec ends its process when a stream is damaged, so it never runs in the user's. The script
answers requests on standard input until that closes. A request is a stream behind its length
(uint64), the answer its weights (int16) behind their count.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
from array import array
from collections.abc import Callable
from importlib import import_module

ADDRESS_SPACE_BYTES = 8 << 30
"""Bounds what a damaged stream can make the codec allocate."""


def main() -> None:
    """Answer requests until there are no more."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = ADDRESS_SPACE_BYTES if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_AS, (min(ADDRESS_SPACE_BYTES, allowed), hard))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the codec prints must not mix with the answers
    decode: Callable[[bytearray], list[int]] = import_module("ethosu.mlw_codec").decode
    requests = sys.stdin.buffer
    while head := requests.read(8):
        (length,) = struct.unpack("<Q", head)
        weights = array("h", decode(bytearray(requests.read(length))))
        answers.write(struct.pack("<Q", len(weights)) + weights.tobytes())
        answers.flush()


if __name__ == "__main__":
    main()
