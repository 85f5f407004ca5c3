"""An artifact as a project of ExecuTorch's runtime for a board."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mizzen.artifact import pte as reading_artifacts
from mizzen.artifact.saving import bytes_for
from mizzen.artifact.steps import NpuStep
from mizzen.boards import Role
from mizzen.diagnostics import fail
from mizzen.export.checkouts import DRIVER, EXECUTORCH
from mizzen.export.project import Project, Request, example_of, require_memory, surroundings
from mizzen.flatbuffer.pte import ENDING
from mizzen.package.executorch import reading, vela_bin
from mizzen.package.executorch.project import PteModel, project_files
from mizzen.package.executorch.reading import CallDelegate, CallKernel, PteProgram, PteTensor
from mizzen.targets.ethos_u.machine.program import RegionIndex

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

ALIGNMENT_BYTES = 16
KERNELS_TEMPORARY_BYTES = 1024
"""What portable kernels allocate while they run: sizes and places of a tensor's extents."""

HEAP_BYTES = 256
"""For each delegate's handle, and as much again."""

METHOD_BYTES = 4096
VALUE_BYTES = 32
TENSOR_BYTES = 160
CALL_BYTES = 64
ARGUMENT_BYTES = 8
DELEGATE_BYTES = 1024
"""Bounds, for addresses of 32 bits, of what a method keeps: an `EValue` and an integer list's head
each, a `TensorImpl` with its sizes, strides and order, a call's list of arguments, and what the
delegate for Ethos-U keeps, the options that it is given among that (ExecuTorch, method.cpp,
tensor_parser_portable.cpp, EthosUBackend.cpp)."""


def executorch_project(artifact: Artifact, request: Request) -> Project:
    """Return the project of an artifact.

    E45x, E174 to E176 and E180 for what an ExecuTorch program cannot hold, E473 for inputs and
    outputs that the firmware cannot fill and show, E415 for an NPU or memory mode that the board
    does not have, E468 if a memory of the board is too small, E711 to E713 for inputs that do not
    fit.
    """
    model = _model(artifact)
    request = replace(request, bare_metal=True)
    mode = request.mode_for(artifact)
    needed = {
        Role.MODEL: len(model.program),
        Role.ARENA: model.planned_bytes + model.temporary_bytes,
        Role.FAST: model.fast_bytes,
    }
    require_memory(request.board, mode, needed)
    around = surroundings(artifact, request, mode)
    example = example_of(artifact, request, mode, needed)
    files = project_files(model, around, example)
    asked = (EXECUTORCH, DRIVER) if model.on_npu else (EXECUTORCH,)
    missing = [checkout.variable for checkout in asked if checkout.variable not in around.checkouts]
    return Project(files, list(model.operators), needed, mode, example.inferences, missing)


def _model(artifact: Artifact) -> PteModel:
    data = bytes_for(artifact, ENDING)
    program = reading.read(data, artifact.name)
    _require_edges(artifact, program)
    payloads = [
        vela_bin.read(delegate.payload, artifact.name, program.named)
        for delegate in program.delegates
    ]
    scratch = max((payload.scratch_bytes for payload in payloads), default=0)
    calls = [
        instruction.kernel
        for instruction in program.instructions
        if isinstance(instruction, CallKernel)
    ]
    return PteModel(
        data,
        list(dict.fromkeys(calls)),
        program.memory_bytes,
        reading.memories(data, artifact.name),
        scratch + ALIGNMENT_BYTES + KERNELS_TEMPORARY_BYTES,
        _method_bytes(program),
        HEAP_BYTES * (1 + len(payloads)),
        _fast_bytes(data, artifact.name),
        len(payloads),
    )


def _fast_bytes(data: bytes, name: str) -> int:
    """Return how much of region 2 the streams use, where it is memory of its own."""
    steps = reading_artifacts.contents_of(data, name).steps
    regions = (step.program.region_bytes for step in steps if isinstance(step, NpuStep))
    return max((sizes.get(int(RegionIndex.SCRATCH_FAST), 0) for sizes in regions), default=0)


def _method_bytes(program: PteProgram) -> int:
    tensors = sum(isinstance(value, PteTensor) for value in program.values)
    calls = [
        instruction
        for instruction in program.instructions
        if isinstance(instruction, CallKernel | CallDelegate)
    ]
    return (
        METHOD_BYTES
        + VALUE_BYTES * len(program.values)
        + TENSOR_BYTES * tensors
        + CALL_BYTES * len(program.instructions)
        + ARGUMENT_BYTES * sum(len(call.arguments) for call in calls)
        + DELEGATE_BYTES * len(program.delegates)
    )


def _require_edges(artifact: Artifact, program: PteProgram) -> None:
    for word, places in (("input", program.inputs), ("output", program.outputs)):
        for place, index in enumerate(places):
            value = program.values[index]
            assert isinstance(value, PteTensor)
            planned = value.place is not None
            if planned and list(value.dim_order) == sorted(value.dim_order):
                continue
            reason = "has its dimensions in another order" if planned else "is not"
            raise fail(
                "E473",
                f"{word} {place} of {artifact.name} must lie in planned memory, and {reason}",
                help="plan inputs and outputs (MemoryPlanningPass), and export contiguous tensors",
            )
