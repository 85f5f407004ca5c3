"""Runs Vela's own command line once, with its deprecated core; started as a script.

The core prints, ends the process, or fails in any way that Python code can; so it never runs in the
user's process. The arguments are the command line's.
"""

from __future__ import annotations

import sys
from importlib import import_module

from mizzen.cpu.tflm_process import ADDRESS_SPACE_BYTES, LOG_BYTES
from mizzen.platforms.limits import limit_resources


def main() -> int:
    """Return Vela's exit status."""
    limit_resources(ADDRESS_SPACE_BYTES, LOG_BYTES)
    status = import_module("ethosu.vela.vela").main(sys.argv[1:])
    return int(status or 0)


if __name__ == "__main__":
    sys.exit(main())
