"""Estimates of a network whose code is no longer Vela's, in the form of Vela's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mizzen.targets.ethos_u.judge.timing import Held, KernelWork, Timed
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Memory
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex
from mizzen.targets.ethos_u.vela.generate import Compiled, Estimate, MemoryEstimate, Work

PURPOSES = {Held.FEATURE_MAP: "FeatureMap", Held.WEIGHTS: "Weights", Held.SCALES: "Scales"}
"""Vela's words for what memory holds; transfers are of weights, and tables are constants too."""


def with_costs(
    compiled: Compiled,
    programs: Sequence[Program],
    timed: Sequence[Sequence[Timed]],
    configuration: EthosUConfiguration,
) -> Compiled:
    """Return a compiled network with the estimates of the code that it has, by Vela's formula."""
    rows = [row for part in timed for row in part]
    cycles = sum(row.vela_cycles for row in rows)
    npu_cycles = sum(row.vela_npu_cycles for row in rows)
    # NPU operators of one network may have the same.
    every = {id(data): data for part in programs for data in part.constants.values()}
    constants = sum(map(len, every.values()))
    figures = {
        **compiled.estimate.figures,
        "totalCycles": cycles,
        "npuCycles": npu_cycles,
        "npuOps": sum(isinstance(row.work, KernelWork) for row in rows),
        "readOnlyPeakUsage": constants,
    }
    memories = tuple(_memories(programs, rows, configuration))
    estimate = Estimate(cycles, npu_cycles, memories, figures)
    return replace(compiled, work=tuple(_work(compiled.work, rows)), estimate=estimate)


def _work(before: Iterable[Work], rows: Iterable[Timed]) -> Iterator[Work]:
    """Return each operator's cycles once; the multiply-accumulates are those of the operator."""
    cycles: defaultdict[int | None, int] = defaultdict(int)
    for row in rows:
        cycles[row.work.origin.operator] += row.vela_cycles
    for work in before:
        if work.on_cpu:
            yield work
        else:
            yield replace(work, cycles=cycles.pop(work.operator, 0))
    for operator, left in cycles.items():
        yield Work(operator, False, left, 0)


def _memories(
    programs: Sequence[Program], rows: Iterable[Timed], configuration: EthosUConfiguration
) -> Iterator[MemoryEstimate]:
    sums: dict[Memory, dict[str, tuple[int, int]]] = {}
    cycles: defaultdict[Memory, float] = defaultdict(float)
    for use in (use for row in rows for use in row.uses):
        purpose = PURPOSES.get(use.held, "Weights")
        found = sums.setdefault(use.bus.memory, {})
        read, written = found.get(purpose, (0, 0))
        found[purpose] = read + use.read_bytes, written + use.written_bytes
        cycles[use.bus.memory] += use.cycles
    peaks = _peaks(programs, configuration)
    for memory in sorted({*sums, *peaks}, key=lambda row: row.value):
        accesses = sums.get(memory, {})
        yield MemoryEstimate(memory.value, peaks.get(memory, 0), round(cycles[memory]), accesses)


def _peaks(programs: Sequence[Program], configuration: EthosUConfiguration) -> dict[Memory, int]:
    mode, found = configuration.mode, defaultdict[Memory, int](int)
    ports = {
        RegionIndex.READ_ONLY: mode.constants,
        RegionIndex.SCRATCH: mode.arena,
        RegionIndex.SCRATCH_FAST: mode.cache,
    }
    for region, port in ports.items():
        sizes = [part.region_bytes.get(region, 0) for part in programs]
        found[configuration.memory(port)] += max(sizes, default=0)
    return dict(found)
