"""Artifacts that Mizzen's own runtime executes, in the plan of memory that it is written with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mizzen.analysis.memory.layout import (
    ARENA,
    CACHE,
    FAST,
    SCRATCH,
    Call,
    Constant,
    Held,
    Layout,
)
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.package.device import DeviceProgram, KernelCall, NpuCall
from mizzen.package.device.memory import MemoryPlan, plan
from mizzen.report.memory import Use


def device_layout(artifact: Artifact, program: DeviceProgram) -> Layout:
    """Return the layout of what a device executes."""
    planned = plan(program)
    tensors = dict(_tensors(program, planned))
    fast = [call.fast_bytes or 0 for call in program.calls if isinstance(call, NpuCall)]
    return Layout(
        calls=tuple(_calls(artifact, program, planned, tensors)),
        tensors=tensors,
        inputs=tuple(index for index in program.inputs if index in tensors),
        outputs=program.outputs,
        states=tuple(state.read for state in program.states if state.read in tensors),
        constants=tuple(_constants(program)),
        ends={ARENA: planned.arena_bytes, **({CACHE: max(fast)} if any(fast) else {})},
    )


def _tensors(program: DeviceProgram, planned: MemoryPlan) -> Iterator[tuple[int, Held]]:
    states = {state.read for state in program.states}
    touched = {index for call in program.calls if isinstance(call, NpuCall)
               for index in (*call.reads, *call.writes)}  # fmt: skip
    for index, tensor in enumerate(program.tensors):
        if tensor.data is not None:
            continue
        if index in states:
            use = Use.STATE
        elif index in program.inputs:
            use = Use.INPUT
        elif index in program.outputs:
            use = Use.OUTPUT
        else:
            use = Use.FEATURE_MAP if index in touched else Use.CPU
        yield (
            index,
            Held(
                tensor.name or f"tensor {index}", use, planned.tensors.get(index), tensor.size_bytes
            ),
        )


def _calls(
    artifact: Artifact,
    program: DeviceProgram,
    planned: MemoryPlan,
    tensors: Mapping[int, Held],
) -> Iterator[Call]:
    """Return the calls, and share the operations of steps on the CPU among the device's."""
    steps = iter(artifact.steps)
    names: list[str] = []
    waiting: list[KernelCall] = []
    for position, call in enumerate(program.calls):
        if isinstance(call, KernelCall):
            waiting.append(call)
            continue
        for step in steps:
            if isinstance(step, NpuStep):
                yield from _on_cpu(waiting, names, tensors)
                waiting, names = [], []
                yield _on_npu(step, call, position, planned, tensors)
                break
            names += step.kinds
    for step in steps:
        names += () if isinstance(step, NpuStep) else step.kinds
    yield from _on_cpu(waiting, names, tensors)


def _on_cpu(
    calls: Sequence[KernelCall], names: Sequence[str], tensors: Mapping[int, Held]
) -> Iterator[Call]:
    """Return calls of kernels as operations of those names, in order; each name is one."""
    if not calls:
        yield from (Call((name,), None, (), ()) for name in names)
        return
    for place, name in enumerate(names):
        low, high = (at * len(calls) // len(names) for at in (place, place + 1))
        part = calls[low:high]
        reads = (index for call in part for index in call.reads if index in tensors)
        writes = (index for call in part for index in call.writes if index in tensors)
        yield Call((name,), None, tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))


def _on_npu(
    step: NpuStep,
    call: NpuCall,
    position: int,
    planned: MemoryPlan,
    tensors: Mapping[int, Held],
) -> Call:
    regions = {SCRATCH: (ARENA, planned.scratch[position])}
    if call.fast_bytes:
        regions[FAST] = CACHE, 0
    reads, writes = (
        tuple(index for index in indices if index in tensors)
        for indices in (call.reads, call.writes)
    )
    copies = call.scratch_offset_bytes is None
    return Call((step.accelerator,), step, reads, writes, regions, copies)


def _constants(program: DeviceProgram) -> Iterator[Constant]:
    for position, call in enumerate(program.calls):
        if isinstance(call, NpuCall):
            yield Constant("command stream", len(call.payload))
            if call.read_only:
                yield Constant("constants", len(call.read_only), None, position)
    for index, tensor in enumerate(program.tensors):
        if tensor.data is not None and tensor.size_bytes:
            yield Constant(tensor.name or f"tensor {index}", tensor.size_bytes)
