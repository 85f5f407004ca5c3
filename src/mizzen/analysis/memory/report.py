"""The report of an artifact's memory, put together from its layout and what its streams do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from mizzen.analysis.memory.constants import divided
from mizzen.analysis.memory.device_layout import device_layout
from mizzen.analysis.memory.layout import ARENA, CACHE, CONSTANTS, RUNTIME, Layout
from mizzen.analysis.memory.lifetimes import Event, Value, joined, live_bytes, values_of
from mizzen.analysis.memory.operations import Trace, trace_of
from mizzen.analysis.memory.step_layout import step_layout
from mizzen.analysis.memory.tflite_layout import tflite_layout
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.device import device_program
from mizzen.artifact.forms import TFLITE, own_ending
from mizzen.artifact.steps import read_network
from mizzen.artifact.written import as_written
from mizzen.diagnostics import MizzenError, fail
from mizzen.report.memory import Allocation, AreaUse, MemoryReport, Use
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, EthosUConfiguration, Memory
from mizzen.targets.ethos_u.machine.recorded_config import recorded
from mizzen.targets.ethos_u.machine.system_config import resolve


def memory_report(
    artifact: Artifact, *, configuration: EthosUConfiguration | None = None
) -> MemoryReport:
    """Say what an artifact's file keeps in which memory, and when.

    configuration  the system that it runs in, as `system_config.resolve` gives it; else the one
                   that it was compiled for, or the accelerator's default where none is known

    E440 for a configuration of another accelerator; E5xx and E61x for streams that cannot be read.
    """
    artifact = as_written(artifact)
    layout = _layout(artifact)
    trace = trace_of(layout)
    names = tuple(trace.names) or (artifact.name,)
    areas = _by_area(trace.events)
    memories = _memories(artifact, configuration)
    allocations = (
        *_allocations(layout, trace, areas, memories),
        *_constants(layout, trace, memories, len(names)),
    )
    return MemoryReport(
        model=artifact.report.model if artifact.report is not None else artifact.name,
        operations=names,
        allocations=tuple(sorted(allocations, key=_order)),
        areas=tuple(_uses(layout, trace, areas, allocations, memories)),
        arena_bytes=layout.arena_bytes,
        file_bytes=len(artifact.data),
    )


def _order(allocation: Allocation) -> tuple[int, str, int]:
    return allocation.first, allocation.area, allocation.address or 0


def _layout(artifact: Artifact) -> Layout:
    if own_ending(artifact.data) == TFLITE:
        return tflite_layout(artifact, read_network(artifact.data, artifact.name))
    try:
        return device_layout(artifact, device_program(artifact))
    except MizzenError:  # nothing that a device executes
        return step_layout(artifact)


def _memories(artifact: Artifact, asked: EthosUConfiguration | None) -> Mapping[str, str]:
    """Return the memory of each area, by its name in `vela.ini`."""
    chosen = asked or _compiled_for(artifact)
    if chosen is None:
        return dict.fromkeys((ARENA, CACHE, CONSTANTS, RUNTIME), _outside(artifact).value)
    if artifact.accelerator not in (None, chosen.accelerator.name):
        raise fail(
            "E440",
            f"the configuration must be for {artifact.accelerator}, which {artifact.name} was "
            f"compiled for, and is for {chosen.accelerator.name}",
            help="compile the network for the other accelerator, and ask about that artifact",
        )
    mode = chosen.mode
    ports = {ARENA: mode.arena, CACHE: mode.cache, CONSTANTS: mode.constants, RUNTIME: mode.arena}
    return {area: chosen.memory(port).value for area, port in ports.items()}


def _compiled_for(artifact: Artifact) -> EthosUConfiguration | None:
    """Return the system of an artifact for Ethos-U; None of another, or where nothing says so."""
    name = artifact.accelerator
    known = {} if artifact.report is None else artifact.report.configuration
    told = str(known.get("accelerator", name))
    if told not in ACCELERATORS or name not in (None, told):
        return resolve(name) if name in ACCELERATORS else None
    return recorded(known) or resolve(told)


def _outside(artifact: Artifact) -> Memory:
    """Return where all of it lies if no configuration says so: an Ethos-N's data are in DRAM."""
    return Memory.SRAM if artifact.accelerator is None else Memory.DRAM


def _by_area(events: Sequence[Event]) -> dict[str, list[Value]]:
    grouped: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        grouped[event.area].append(event)
    return {area: values_of(each) for area, each in grouped.items()}


def _allocations(
    layout: Layout, trace: Trace, areas: Mapping[str, Sequence[Value]], memories: Mapping[str, str]
) -> Iterator[Allocation]:
    for area, values in areas.items():
        for value in joined(values):
            yield Allocation(
                value.name, memories[area], area, value.use, value.taken.first, value.taken.size,
                value.first, value.last,
            )  # fmt: skip
    last = max(len(trace.names) - 1, 0)
    for held in layout.runtime:
        yield Allocation(
            held.name,
            memories[held.area],
            held.area,
            held.use,
            held.address,
            held.size_bytes,
            0,
            last,
        )
    for index, held in layout.tensors.items():
        if held.address is None and held.size_bytes:
            first, end = trace.spans.get(index, (0, last))
            yield Allocation(
                held.name,
                memories[held.area],
                held.area,
                held.use,
                None,
                held.size_bytes,
                first,
                end,
            )


def _constants(
    layout: Layout, trace: Trace, memories: Mapping[str, str], operations: int
) -> Iterator[Allocation]:
    for constant in divided(layout.constants, trace.reads):
        yield Allocation(
            constant.name, memories[CONSTANTS], CONSTANTS, Use.CONSTANTS, constant.address,
            constant.size_bytes,
            0, operations - 1,
        )  # fmt: skip


def _uses(
    layout: Layout,
    trace: Trace,
    areas: Mapping[str, Sequence[Value]],
    allocations: Sequence[Allocation],
    memories: Mapping[str, str],
) -> Iterator[AreaUse]:
    count = max(len(trace.names), 1)
    for area in (ARENA, CACHE, RUNTIME, CONSTANTS):
        inside = [each for each in allocations if each.area == area]
        live = list(live_bytes(areas.get(area, ()), count))
        for allocation in (each for each in inside if each.address is None or area == CONSTANTS):
            for at in range(allocation.first, allocation.last + 1):
                live[at] += allocation.size_bytes
        if inside or layout.ends.get(area):
            used = max(layout.ends.get(area, 0), *live)
            yield AreaUse(area, memories[area], used, tuple(live), live.index(max(live)))
