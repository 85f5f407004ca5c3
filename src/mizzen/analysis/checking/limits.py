"""What an artifact of any compiler may need: SRAM, and operators on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.cost import cost_report
from mizzen.analysis.memory import memory_report
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import Device, Diagnostic
from mizzen.report.compilation import SRAM


def artifact_failures(
    artifact: Artifact, *, max_cpu_ops: int | None, sram_budget_bytes: int | None
) -> Iterator[Diagnostic]:
    """Return errors for what is not as allowed: E401 for the CPU, E402 for the SRAM.

    Raises what cost and memory reports do, for an artifact of which neither can be said.
    """
    if max_cpu_ops is not None:
        yield from _cpu_failures(artifact, max_cpu_ops)
    if sram_budget_bytes is not None:
        yield from _sram_failures(artifact, sram_budget_bytes)


def _cpu_failures(artifact: Artifact, most: int) -> Iterator[Diagnostic]:
    operations = cost_report(artifact).operations
    on_cpu = [each.name for each in operations if each.device is Device.CPU]
    if len(on_cpu) > most:
        count = "1 is" if len(on_cpu) == 1 else f"{len(on_cpu)} are"
        yield Diagnostic(
            "E401",
            f"at most {most} operators of the artifact may be on the CPU, but {count}: "
            f"{', '.join(sorted(set(on_cpu)))}",
            rule="--max-cpu-ops",
            help="see why with `mizzen check MODEL`, or allow more",
        )


def _sram_failures(artifact: Artifact, budget_bytes: int) -> Iterator[Diagnostic]:
    memory = memory_report(artifact)
    used = memory.by_memory.get(SRAM, 0)
    if used > budget_bytes:
        areas = [area for area in memory.areas if area.memory == SRAM]
        parts = ", ".join(f"{area.area} {area.used_bytes}" for area in areas)
        yield Diagnostic(
            "E402",
            f"the artifact may use {budget_bytes} bytes of SRAM, but needs {used} ({parts}): "
            f"{used - budget_bytes} too many",
            rule="--sram-budget",
            help="see what fits with `mizzen check MODEL --sram-budget BYTES`, or allow more",
        )
