"""Artifacts of which only the steps are known: ExecuTorch programs, and what no device executes.

An ExecuTorch program has planned its memory; the memory of a delegate comes from the method's
temporary allocator, which is taken to lie after it (EthosUBackend.cpp). Of others the tensors at
the edge have sizes, and what lies between steps is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mizzen.analysis.memory.ethos_n_calls import ethos_n_scratch, passes
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
from mizzen.artifact.arena import Place
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.ethos_n import NpuProgram
from mizzen.artifact.steps import NpuStep, Step
from mizzen.package.device.memory import aligned
from mizzen.report.memory import Use
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex


def step_layout(artifact: Artifact) -> Layout:
    """Return the layout of an artifact's steps."""
    contents = artifact.contents
    planned = 0 if contents.arena is None else aligned(sum(contents.arena.block_bytes.values()))
    tensors = dict(_tensors(artifact))
    programs = [step.program for step in artifact.steps if isinstance(step, NpuStep)]
    sizes = [program.region_bytes for program in programs if isinstance(program, Program)]
    scratch = max((each.get(SCRATCH, 0) for each in sizes), default=0)
    fast = max((each.get(FAST, 0) for each in sizes), default=0)
    carried = {state.read for state in contents.carried}
    return Layout(
        calls=tuple(_call(step, planned, tensors) for step in artifact.steps),
        tensors=tensors,
        inputs=tuple(index for index in contents.inputs if index in tensors),
        outputs=contents.outputs,
        states=tuple(sorted(carried & tensors.keys())),
        constants=tuple(_constants(artifact)),
        ends={ARENA: planned + scratch, **({CACHE: fast} if fast else {})},
    )


def _tensors(artifact: Artifact) -> Iterator[tuple[int, Held]]:
    contents = artifact.contents
    places: Mapping[int, Place] = {} if contents.arena is None else contents.arena.places
    carried = {state.read for state in contents.carried}
    used = {index for step in artifact.steps for index in (*step.inputs, *step.outputs)}
    for index, info in contents.infos.items():
        if index in contents.constants or index not in used | {*contents.inputs}:
            continue
        if index in carried:
            use = Use.STATE
        elif index in contents.inputs:
            use = Use.INPUT
        else:
            use = Use.OUTPUT if index in contents.outputs else Use.CPU
        place = places.get(index)
        address = None if place is None else place.offset_bytes
        yield index, Held(info.name or f"tensor {index}", use, address, info.size_bytes)


def _call(step: Step, planned: int, tensors: Mapping[int, Held]) -> Call:
    reads, writes = (
        tuple(index for index in indices if index in tensors)
        for indices in (step.inputs, step.outputs)
    )
    if not isinstance(step, NpuStep):
        return Call(step.kinds, None, reads, writes)
    regions = {SCRATCH: (ARENA, planned), FAST: (CACHE, 0)}
    return Call(
        passes(step), step, reads, writes, regions, True, ethos_n_scratch(step)
    )  # fmt: skip


def _constants(artifact: Artifact) -> Iterator[Constant]:
    for place, step in enumerate(artifact.steps):
        program = step.program if isinstance(step, NpuStep) else None
        if isinstance(program, Program):
            yield Constant("command stream", program.words.nbytes)
            data = program.constants.get(int(RegionIndex.READ_ONLY), np.zeros(0, np.uint8))
            if data.nbytes:
                yield Constant("constants", data.nbytes, None, place)
        elif isinstance(program, NpuProgram):
            held = program.program.container
            yield Constant("weights", len(held.constant_dma))
            yield Constant("command stream", len(held.constant_control_unit))
    infos = artifact.contents.infos
    for index, array in artifact.contents.constants.items():
        name = infos[index].name if index in infos else f"tensor {index}"
        yield Constant(name, array.nbytes)
