"""TFLite artifacts in the arena of TensorFlow Lite Micro."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mizzen.analysis.memory.ethos_n_calls import ethos_n_constants, ethos_n_scratch, passes
from mizzen.analysis.memory.layout import (
    ARENA,
    CACHE,
    FAST,
    RUNTIME,
    SCRATCH,
    Call,
    Constant,
    Held,
    Layout,
)
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.resources import VariableStep
from mizzen.artifact.steps import CpuStep, NpuStep, is_npu
from mizzen.diagnostics import MizzenError
from mizzen.export.tflm.arena import TflmArena, arena_of
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.model import ABSENT
from mizzen.frontends.tflite.subgraphs import called
from mizzen.report.memory import Use
from mizzen.targets.ethos_u.machine.program import Program


def tflite_layout(artifact: Artifact, model: Model) -> Layout:
    """Return the layout of a network that an interpreter executes as it is.

    Where TensorFlow Lite Micro has no kernel for an operator, tensors have the places that the
    compiler gave them, and the others none.
    """
    arena = _arena(artifact, model)
    places = _places(arena)
    scratch = _scratch(model, arena)
    calls = tuple(_calls(artifact, model, scratch))
    touched = {index for call in calls for index in (*call.reads, *call.writes)}
    touched.update((*model.main.inputs, *model.main.outputs))
    used = {index: model.main.tensors[index] for index in sorted(touched)}
    kept = {each.tensor for each in (() if arena is None else arena.kept)}
    tensors = {
        index: _held(model, tensor, places.get(index), RUNTIME if (0, index) in kept else ARENA)
        for index, tensor in used.items() if tensor.data is None
    }  # fmt: skip
    return Layout(
        calls=calls,
        tensors=tensors,
        inputs=tuple(index for index in model.main.inputs if index in tensors),
        outputs=model.main.outputs,
        states=tuple(index for index, held in tensors.items() if held.use is Use.STATE),
        constants=_with_tables(tuple(_constants(artifact, model)), artifact, arena),
        runtime=tuple(_runtime(arena, tensors)),
        ends=_ends(artifact, arena),
        arena_bytes=None if arena is None else arena.least_bytes,
    )


def _arena(artifact: Artifact, model: Model) -> TflmArena | None:
    if any(isinstance(step, NpuStep) and not isinstance(step.program, Program)
           for part in artifact.subgraphs for step in part.steps):  # fmt: skip
        return None
    try:
        return arena_of(model)
    except MizzenError:  # an operator for which there is no kernel
        return None


def _places(arena: TflmArena | None) -> Mapping[int, int]:
    planned = () if arena is None else arena.planned
    return {
        block.tensor[1]: block.offset_bytes
        for block in planned
        if block.tensor and block.tensor[0] == 0
    }


def _held(model: Model, tensor: Tensor, address: int | None, area: str) -> Held:
    if tensor.variable:
        use = Use.STATE
    elif tensor.index in model.main.inputs:
        use = Use.INPUT
    elif tensor.index in model.main.outputs:
        use = Use.OUTPUT
    else:
        use = Use.CPU if _is_of_cpu(model, tensor.index) else Use.FEATURE_MAP
    name = tensor.name or f"tensor {tensor.index}"
    return Held(name, use, address, tensor.size_bytes or 0, area)


def _is_of_cpu(model: Model, index: int) -> bool:
    """Whether operators on the CPU alone read and write a tensor."""
    users = [
        operator
        for operator in model.main.operators
        if index in (*operator.inputs, *operator.outputs)
    ]
    return not any(map(is_npu, users))


def _scratch(model: Model, arena: TflmArena | None) -> Mapping[int, list[Held]]:
    """Return the memory of kernels, and of graphs that they call, by operator of the main graph."""
    needed: defaultdict[int, list[Held]] = defaultdict(list)
    callers = _callers(model)
    for block in () if arena is None else arena.planned:
        key = block.operator or block.tensor
        if key is None or (key[0] == 0 and block.operator is None):
            continue
        caller = key[1] if key[0] == 0 else callers.get(key[0])
        if caller is not None:
            name = f"{block.name} while it runs" if block.operator else block.name
            held = Held(name, Use.CPU, block.offset_bytes, block.size_bytes)
            needed[caller].append(held)
    return needed


def _callers(model: Model) -> Mapping[int, int]:
    """Return the operator of the main graph that other graphs are executed for."""
    callers: dict[int, int] = {}

    def call(operator: Operator, caller: int) -> None:
        for index in called(operator):
            if index not in callers:
                callers[index] = caller
                for inner in model.subgraphs[index].operators:
                    call(inner, caller)

    for each in model.main.operators:
        call(each, each.index)
    return callers


def _calls(
    artifact: Artifact, model: Model, scratch: Mapping[int, Sequence[Held]]
) -> Iterator[Call]:
    npu = (each for each in model.main.operators if is_npu(each))
    for step in artifact.steps:
        match step:
            case NpuStep():
                operator = next(npu)
                variables = (variable.index for variable in step.variables)
                reads = tuple(dict.fromkeys((*step.inputs, *variables)))
                held = (*scratch.get(operator.index, ()), *ethos_n_scratch(step))
                regions = dict(_regions(step))
                yield Call(passes(step), step, reads, step.outputs, regions, False, held)
            case CpuStep() | ControlStep() | VariableStep():
                for operator in step.operators:
                    yield Call(
                        (_named(model, operator),), None, _variables(model, operator.inputs),
                        _variables(model, operator.outputs),
                        scratch=tuple(scratch.get(operator.index, ())),
                    )  # fmt: skip
            case _:
                raise AssertionError(step)


def _regions(step: NpuStep) -> Iterator[tuple[int, tuple[str, int]]]:
    shared = step.part.shared
    if SCRATCH in shared:
        yield SCRATCH, (ARENA, shared[SCRATCH].offset_bytes)
    if FAST in shared:
        yield FAST, (CACHE, shared[FAST].offset_bytes)


def _named(model: Model, operator: Operator) -> str:
    outputs = model.main.present(operator.outputs)
    return f"{operator.kind} {outputs[0].name}".rstrip() if outputs else operator.kind


def _variables(model: Model, indices: Sequence[int]) -> tuple[int, ...]:
    """Return those of some tensors that are not constants, and have a size."""
    tensors = model.main.tensors
    return tuple(
        dict.fromkeys(
            index
            for index in indices
            if index != ABSENT and tensors[index].data is None and tensors[index].size_bytes
        )
    )


def _runtime(arena: TflmArena | None, tensors: Mapping[int, Held]) -> Iterator[Held]:
    if arena is None:
        return
    sums: dict[tuple[str, bool], int] = {}
    for kept in arena.kept:
        key, size = (kept.name, kept.state), kept.size_bytes
        if kept.tensor is not None and kept.tensor[0] == 0 and kept.tensor[1] in tensors:
            key, size = ("alignment", False), size - tensors[kept.tensor[1]].size_bytes
        sums[key] = sums.get(key, 0) + size
    for (name, state), size in sums.items():
        use = Use.STATE if state else Use.RUNTIME
        if size:
            yield Held(name, use, None, size, RUNTIME)
    if arena.least_bytes > arena.used_bytes:
        room = arena.least_bytes - arena.used_bytes
        yield Held("room to prepare the network", Use.RUNTIME, None, room, RUNTIME)


def _ends(artifact: Artifact, arena: TflmArena | None) -> Mapping[str, int]:
    every = (step for subgraph in artifact.subgraphs for step in subgraph.steps)
    steps = [step for step in every if isinstance(step, NpuStep)]
    spans = [span for step in steps for region, span in step.part.shared.items()
             if region == SCRATCH]  # fmt: skip
    end = max((span.end for span in spans), default=0)
    fast = [step.part.shared[FAST].end for step in steps if FAST in step.part.shared]
    return {
        ARENA: end if arena is None else max(arena.plan_bytes, end),
        **({CACHE: max(fast)} if fast else {}),
    }


def _constants(artifact: Artifact, model: Model) -> Iterator[Constant]:
    """Return every constant of the file once; an operator's place is that of its call."""
    file = np.frombuffer(artifact.data, np.uint8)
    first, seen = file.ctypes.data, set[int]()
    roles = dict(_roles(artifact, model))
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            if tensor.data is None or not tensor.data.nbytes or tensor.data.ctypes.data in seen:
                continue
            seen.add(tensor.data.ctypes.data)
            at = tensor.data.ctypes.data - first
            plain = Constant(
                tensor.name or f"tensor {tensor.index}",
                tensor.data.nbytes,
                at if 0 <= at < file.nbytes else None,
            )
            parts = roles.get(tensor.index) if subgraph.index == 0 else None
            yield from (plain,) if parts is None else parts(plain)


def _with_tables(
    constants: tuple[Constant, ...], artifact: Artifact, arena: TflmArena | None
) -> tuple[Constant, ...]:
    """Add the rest of the file: an interpreter reads tensors and operators in it as it lies.

    The manifest lies there too, though no interpreter reads it.
    """
    if arena is None:
        return constants
    manifest = artifact.manifest
    said = 0 if manifest is None else len(manifest.framed())
    rest = len(artifact.data) - said - sum(constant.size_bytes for constant in constants)
    own = (Constant("manifest", said),) if said else ()
    return (*constants, Constant("tables of the file", rest), *own)


Parts = Callable[[Constant], Sequence[Constant]]
"""Says what a constant of an NPU operator consists of."""


def _roles(artifact: Artifact, model: Model) -> Iterator[tuple[int, Parts]]:
    """Return a division of each constant of NPU operators, by tensor."""
    steps = (step for step in artifact.steps if isinstance(step, NpuStep))
    for operator in (each for each in model.main.operators if is_npu(each)):
        step = next(steps)
        if isinstance(step.program, Program):
            yield operator.inputs[0], lambda whole: [replace(whole, name="command stream")]
            yield operator.inputs[1], partial(_read_by, operator.index)
        else:
            yield operator.inputs[0], partial(ethos_n_constants, step)


def _read_by(call: int, whole: Constant) -> Sequence[Constant]:
    return [replace(whole, name="constants", call=call)]
