"""Whether a network fits the SRAM that it may use, what is alive at its peak, and what would help.

What must be in SRAM is counted by the artifact's own memory report: feature maps, staged data,
tensors and states of the processor, what the runtime keeps; constants where the memory mode has
them there. What would help is measured: the network is compiled again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack

from mizzen.analysis.memory import memory_report
from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import compile_file, source_of
from mizzen.compiler.options import CompileKeywords, CompileOptions
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.report.compilation import SRAM, CompileReport
from mizzen.report.memory import Allocation, MemoryReport, Use
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Optimise
from mizzen.targets.ethos_u.machine.recorded_config import recorded
from mizzen.targets.ethos_u.machine.system_config import usable_memory_modes
from mizzen.targets.ethos_u.machine.vela_ini import read_files

SHOWN_AT_PEAK = 4
"""Tensors that are named; what is smaller is added up."""

COMPILERS = ("arena", "cache")
"""Areas that the compiler fills as it is told."""

MAPS = (Use.INPUT, Use.OUTPUT, Use.FEATURE_MAP, Use.CPU)
"""What grows with the network's input."""

Again = Callable[..., Artifact]
"""Compiles the network again, with other options."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Options with which a network was compiled again, and the SRAM that it needs then."""

    words: str
    sram_bytes: int


def again(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    **options: Unpack[CompileKeywords],
) -> Again:
    """Return a function that compiles a network again, with other options."""

    def compile_again(**changes: Any) -> Artifact:
        changed: dict[str, Any] = {**options, **changes, "prove": "off"}
        target = resolve_target(CompileOptions(accelerator, **changed))
        return compile_file(source_of(model), target)

    return compile_again


def sram_failures(
    report: CompileReport,
    artifact: Artifact | None,
    budget_bytes: int,
    compile_again: Again | None = None,
) -> Iterator[Diagnostic]:
    """Return E402 if a network needs more SRAM than it may use.

    artifact  what was compiled; without one, only what the compiler counts is known
    """
    memory = None if artifact is None else memory_report(artifact)
    used = sram_of(report, memory)
    if used <= budget_bytes:
        return
    parts = ", ".join(f"{name} {size}" for name, size in _parts(report, memory))
    alive = "" if memory is None else _peak(memory)
    yield Diagnostic(
        "E402",
        f"the network may use {budget_bytes} bytes of SRAM, but needs {used} ({parts}): "
        f"{used - budget_bytes} too many{alive}",
        rule="--sram-budget",
        help=_help(report, memory, budget_bytes, compile_again),
    )


def what_would_help(
    report: CompileReport,
    artifact: Artifact,
    over_bytes: int,
    compile_again: Again,
    modes: Collection[str],
) -> str:
    """Say what would help a network that needs too much SRAM, or what it is that needs so much.

    modes  memory modes that may be tried
    """
    memory = memory_report(artifact)
    budget_bytes = sram_of(report, memory) - over_bytes
    said = _help(report, memory, budget_bytes, compile_again, modes)
    maps = _maps_at_once(memory)
    if maps <= budget_bytes:
        return said
    inputs = ", ".join("x".join(map(str, info.shape)) for info in artifact.inputs)
    return (
        f"{said}; feature maps of {maps} bytes are there at once, which grow with the input "
        f"({inputs}): a smaller input is what helps"
    )


def _maps_at_once(memory: MemoryReport) -> int:
    """Return the most bytes of feature maps that are alive at one operation."""
    held = [
        allocation
        for allocation in memory.allocations
        if allocation.memory == SRAM and allocation.use in MAPS
    ]
    return max(
        (
            _covered(
                [
                    allocation
                    for allocation in held
                    if allocation.first <= operation <= allocation.last
                ]
            )
            for operation in range(len(memory.operations))
        ),
        default=0,
    )


def _covered(allocations: Sequence[Allocation]) -> int:
    """Return how many bytes tensors take, of which several may lie at one place."""
    bytes_, end = 0, ("", 0)
    for allocation in sorted(allocations, key=lambda each: (each.area, each.address or 0)):
        start = max(allocation.address or 0, end[1] if allocation.area == end[0] else 0)
        stop = (allocation.address or 0) + allocation.size_bytes
        if stop > start:
            bytes_ += stop - start
            end = allocation.area, stop
    return bytes_


def sram_of(report: CompileReport, memory: MemoryReport | None) -> int:
    """Return the bytes of SRAM; those that the compiler says where there is nothing to count."""
    if memory is None or not any(area.memory == SRAM for area in memory.areas):
        return report.sram_bytes
    return memory.by_memory[SRAM]


def _parts(report: CompileReport, memory: MemoryReport | None) -> Iterator[tuple[str, int]]:
    counted = () if memory is None else [each for each in memory.areas if each.memory == SRAM]
    if not counted:
        yield from ((each.name, each.used_bytes) for each in report.areas if each.is_sram)
        return
    for area in counted:
        states = sum(
            held.size_bytes
            for held in (() if memory is None else memory.allocations)
            if held.area == area.area and held.use is Use.STATE
        )
        yield f"{area.area}{f' with states of {states} in it' if states else ''}", area.used_bytes


def _peak(memory: MemoryReport) -> str:
    """Say what is alive where the most of the SRAM is."""
    areas = [area for area in memory.areas if area.memory == SRAM]
    if not areas:
        return ""
    live = [sum(counts) for counts in zip(*(area.live_bytes for area in areas), strict=True)]
    at = live.index(max(live))
    alive = [
        allocation for allocation in memory.alive_at(at, SRAM) if allocation.use is not Use.RUNTIME
    ]
    shown = [
        f'"{_short(allocation.name)}" {allocation.size_bytes}'
        for allocation in alive[:SHOWN_AT_PEAK]
    ]
    if rest := len(alive) - len(shown):
        shown.append(
            f"{rest} more {sum(allocation.size_bytes for allocation in alive[SHOWN_AT_PEAK:])}"
        )
    held = ", ".join(shown)
    return f"; alive at the peak, operation {at} ({_short(memory.operations[at])}): {held}"


def _short(name: str) -> str:
    """Return the first of the names that a converter joins for what it has fused."""
    return name.partition(";")[0]


def _help(
    report: CompileReport,
    memory: MemoryReport | None,
    budget_bytes: int,
    compile_again: Again | None,
    modes: Collection[str] | None = None,
) -> str:
    remedies = list(_remedies(report, memory, budget_bytes, compile_again, modes))
    fitting = [remedy for remedy in remedies if remedy.sram_bytes <= budget_bytes]
    if fitting:
        return f"{fitting[-1].words} fits: it needs {fitting[-1].sram_bytes} bytes"
    if remedies:
        least = min(sram_of(report, memory), *(remedy.sram_bytes for remedy in remedies))
        tried = f"no option that was tried needs fewer than {least} bytes"
        return f"use a smaller network or input; {tried}"
    return "use a smaller network or input; what the compiler can do was not tried"


def _remedies(
    report: CompileReport,
    memory: MemoryReport | None,
    budget_bytes: int,
    compile_again: Again | None,
    modes: Collection[str] | None,
) -> Iterator[Remedy]:
    """Compile with one option after the other until the network fits."""
    if compile_again is None or memory is None:
        return
    for words, changes in _changes(report, memory, budget_bytes, modes):
        try:
            artifact = compile_again(**changes)
        except MizzenError:
            continue
        assert artifact.report is not None, "a compilation always reports"
        remedy = Remedy(words, sram_of(artifact.report, memory_report(artifact)))
        yield remedy
        if remedy.sram_bytes <= budget_bytes:
            return


def _changes(
    report: CompileReport,
    memory: MemoryReport,
    budget_bytes: int,
    modes: Collection[str] | None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    configuration = _configuration(report)
    if configuration is None:
        return
    if configuration.optimise is not Optimise.SIZE:
        yield "--optimise Size", {"optimise": Optimise.SIZE.value}
    scheduled = sum(
        area.used_bytes for area in memory.areas if area.memory == SRAM and area.area in COMPILERS
    )
    left = budget_bytes - (memory.by_memory.get(SRAM, 0) - scheduled)
    if 0 < left < scheduled:
        yield f"--arena-cache-size {left}", {"arena_cache_size": left}
    for mode in other_modes(report):
        if modes is not None and mode not in modes:
            continue
        yield f"--memory-mode {mode}", {"memory_mode": mode}


def _configuration(report: CompileReport) -> EthosUConfiguration | None:
    known = report.configuration
    return recorded(known) if str(known.get("accelerator", "")).startswith("ethos-u") else None


def other_modes(report: CompileReport) -> Sequence[str]:
    """Return other memory modes that the NPU can run, if their files are still there."""
    configuration = _configuration(report)
    if configuration is None:
        return ()
    try:
        sections = read_files(configuration.files)
    except MizzenError:
        return ()
    usable = usable_memory_modes(sections, configuration.accelerator, configuration.system)
    return [mode for mode in usable if mode != configuration.mode.name]
