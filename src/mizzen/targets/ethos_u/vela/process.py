"""Runs Vela's compiled core once; started as a script, in a process of its own.

The core can end its process, loop, or ask for memory without end, so it never runs in the user's.
The first argument is the core's file. A request on standard input and the answer on standard
output are both a JSON document behind its length (uint64), followed by a network. What the core
prints goes to standard error, unbuffered, so that a crash loses none of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[4]
"""Where Mizzen itself is found: the interpreter is started without any folder of packages."""

ADDRESS_SPACE_BYTES = 8 << 30
"""Bounds what the core may allocate; the largest networks for these NPUs need well under one."""

LOG_BYTES = 64 << 20
"""Bounds what the core may print into its log file."""

TABLES = {
    "source": ("id", "ext_key", "operator"),
    "optimised": ("id", "source_id"),
    "queue": ("cmdstream_id", "offset", "optimised_id"),
    "perf": ("source_id", "operator", "name", "op_cycles", "mac_count"),
}
"""The tables of the core's debug database that are used, and their columns."""

FIGURES = (
    "totalCycles",
    "npuCycles",
    "macCount",
    "encodedWeights",
    "originalWeights",
    "readOnlyPeakUsage",
    "npuOps",
    "cpuOps",
    "cascades",
    "cascadedOps",
)
"""The numbers of the core's performance report that are used."""


def main() -> None:
    """Answer one request."""
    sys.path.append(str(SOURCES))
    from mizzen.platforms.limits import limit_resources

    limit_resources(ADDRESS_SPACE_BYTES, LOG_BYTES)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _print_unbuffered()
    (length,) = struct.unpack("<Q", sys.stdin.buffer.read(8))
    request = json.loads(sys.stdin.buffer.read(length))
    network = sys.stdin.buffer.read()
    try:
        core = _load(sys.argv[1])
        document, compiled = _compile(core, request, network)
    except Exception as error:
        document, compiled = {"error": type(error).__name__, "text": str(error)}, b""
    head = json.dumps(document).encode()
    answers.write(struct.pack("<Q", len(head)) + head + compiled)
    answers.flush()


def _print_unbuffered() -> None:
    # Windows' loader has no library of the process itself, and C's stdout no name there.
    with suppress(TypeError, OSError, ValueError):
        library = ctypes.CDLL(None)
        unbuffered = 2
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, unbuffered, 0)


def _load(path: str) -> Any:
    loader = ExtensionFileLoader("ethosu.regor", path)
    spec = spec_from_file_location("ethosu.regor", path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _compile(core: Any, request: dict[str, str], network: bytes) -> tuple[dict[str, Any], bytes]:
    result = core.compile(
        request["family"],
        network,
        request["form"],
        request["system"],
        options=request["options"],
        verbose=True,
    )
    performance = result.perf_report
    document = {
        "version": core.__version__.strip('"'),
        "tables": {name: _rows(result.opt_database, name) for name in TABLES},
        "figures": {name: getattr(performance, name) for name in FIGURES},
        "memories": {name: _memory(use) for name, use in performance.memories.items()},
    }
    return document, bytes(result.model)


def _memory(use: Any) -> dict[str, Any]:
    accesses = use.accesses.values()
    return {
        "peak": use.peakUsage,
        "cycles": use.totalAccessCycles,
        "accesses": {row.accessType: (row.bytesRead, row.bytesWritten) for row in accesses},
    }


def _rows(database: Any, name: str) -> list[list[str]]:
    table = database.tables.get(name)
    if table is None:
        return []
    columns = [table.header.index(column) for column in TABLES[name]]
    return [[row[column] for column in columns] for row in table.data]


if __name__ == "__main__":
    main()
