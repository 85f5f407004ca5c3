"""The script of a process that executes a part."""

from __future__ import annotations

import os
import sys

from mizzen.mesh.execution.processes import serve


def main() -> None:
    """Answer orders that come on standard input; what else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
