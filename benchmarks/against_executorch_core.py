"""Compile TOSA files with Vela's core as Mizzen has it, for its estimates.

``python against_executorch_core.py ACCELERATOR FILE...`` prints a JSON list with, of each file, the
core's `cycles`, its peak of `sram_bytes` for feature maps, and its `constant_bytes`. Both sides of
the benchmark have the same core and configuration: what differs is the graph that each side made.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import CORE, FAMILY_NAMES, options_text, system_text


def figures(core: Any, network: bytes, configuration: EthosUConfiguration) -> dict[str, int]:
    """Compile one TOSA network. The core's own error comes through."""
    result = core.compile(
        FAMILY_NAMES[configuration.accelerator.arch],
        network,
        "TOSA",
        system_text(configuration),
        options=options_text(configuration),
        verbose=False,
    )
    report = result.perf_report
    memories = {memory.memoryName.lower(): memory.peakUsage for memory in report.memories.values()}
    sram, constants = memories.get("sram", 0), report.readOnlyPeakUsage
    if configuration.mode.constants is configuration.mode.arena:
        sram -= constants  # one memory has both, and the core counts both
    return {"cycles": report.totalCycles, "sram_bytes": sram, "constant_bytes": constants}


def main() -> None:
    """Print the figures of all files; what the core prints goes to standard error."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    configuration = resolve(sys.argv[1])
    core = import_module(CORE)
    files = [Path(argument).read_bytes() for argument in sys.argv[2:]]
    json.dump([figures(core, network, configuration) for network in files], answer)
    answer.flush()


if __name__ == "__main__":
    main()
