"""Runs real firmware on an emulated Cortex-M, with the NPU simulated.

`device` is the NPU as a driver sees it: registers, queue, interrupt, counters. It executes the
command stream that firmware points it to with the same simulator that runs artifacts, over the
memory that firmware sees. A processor is one of two backends with one interface: Unicorn in this
process, or QEMU in its own. So a board is tested whole on a desk: start-up, driver, interrupt,
cache of plans, results bit for bit.

Names are imported when they are first used: pytest loads `pytest_plugin` in every run, and must
not pay for NumPy.

Neither processor counts cycles, and the NPU's are an estimate. It must not know compilers: firmware
brings what it runs. Firmware is not trusted: it reads no file of the host, and it ends in time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mizzen.emulate.device import Fault, Invocation, NpuDevice
    from mizzen.emulate.processor import Core, Reason
    from mizzen.emulate.result import MARKER, EmulationResult
    from mizzen.emulate.run import Options, emulate
    from mizzen.emulate.trace import BusRow

__all__ = [
    "MARKER",
    "BusRow",
    "Core",
    "EmulationResult",
    "Fault",
    "Invocation",
    "NpuDevice",
    "Options",
    "Reason",
    "emulate",
]

_HOME = {
    "MARKER": "result",
    "BusRow": "trace",
    "Core": "processor",
    "EmulationResult": "result",
    "Fault": "device",
    "Invocation": "device",
    "NpuDevice": "device",
    "Options": "run",
    "Reason": "processor",
    "emulate": "run",
}

if not TYPE_CHECKING:  # a type checker must still see a misspelt name

    def __getattr__(name: str) -> object:
        """Import a public name from its module on first use."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
