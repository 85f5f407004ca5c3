"""Runs real firmware on an emulated Cortex-M, with the NPU simulated.

`device` is the NPU as a driver sees it: registers, queue, interrupt, counters. It executes the
command stream that firmware points it to with the same simulator that runs artifacts, over the
memory that firmware sees. A processor is one of two backends with one interface: Unicorn in this
process, or QEMU in its own. So a board is tested whole on a desk: start-up, driver, interrupt,
cache of plans, results bit for bit.

Neither processor counts cycles, and the NPU's are an estimate. It must not know compilers: firmware
brings what it runs. Firmware is not trusted: it reads no file of the host, and it ends in time.
"""

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
