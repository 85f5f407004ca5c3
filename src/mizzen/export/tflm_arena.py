"""How large an arena TensorFlow Lite Micro needs for a network, at most.

An interpreter allocates from both ends of its arena. From the start: a plan of tensors and of what
kernels need while they run. From the end, and for good: its own structures and what kernels keep.
What it needs while it prepares lies where the plan does, before that is there.

Sizes are those of processors with addresses of 64 bits, which the package tflite-micro shows
(`CpuKernels.memory`). They bound those of 32 bits: every structure consists of numbers of a fixed
size, of addresses and of sizes, so it and its alignment are no larger there; blocks are laid end to
end, in the same order, so no later block starts nearer to the other end.

Where a compiler has placed the tensors, the kernels' needs of one operator lie between them or
behind them, and those of different operators may lie over one another: the plan ends at the latest
at the end of the tensors plus the needs of the operator that needs most. Without such a plan
the arena is one in which the whole network can be prepared here.

Ref: tflite-micro 90b983c, micro_allocator.cc, micro_allocation_info.cc, greedy_memory_planner.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.artifact.ethos_u import ETHOS_U, NOT_IN_ARENA
from mizzen.artifact.resources import VARIABLE_KINDS
from mizzen.artifact.steps import is_npu
from mizzen.cpu import CpuKernels
from mizzen.frontends.tflite import Model, Operator, Subgraph, Tensor
from mizzen.package.tflite.extract import extract

ALIGNMENT_BYTES = 16

INTERPRETER_BYTES = 512
"""Of the arena's end, for a network without tensors: allocators, the plan's maker, the graph."""
TENSOR_BYTES = 24
OPERATOR_BYTES = 64
SUBGRAPH_BYTES = 64
SHOWN_TENSOR_BYTES = 64
"""An input or output of the network, which has a structure of its own."""
QUANTISATION_BYTES = 32
"""What quantisation adds to that, without the channels."""
VARIABLE_BYTES = 32
HANDLE_BYTES = 8
"""What finds a kernel's memory in the plan."""

NPU_KEPT_BYTES = 16
NPU_BASE_BYTES = 8
NPU_SIZE_BYTES = 8
"""The kernel of NPU operators keeps three numbers, and needs a base address and a size of each
input and output while it runs (ethos_u/ethosu.cc)."""
NPU_REQUESTS = 2

REQUEST_BYTES = 16
REQUESTS_PER_OPERATOR = 12
"""Room for what a kernel may ask for, kept while networks are prepared."""
PLANNED_BYTES = 80
"""For each tensor, while the plan is made: when it is needed, and where it goes."""
SHAPED_TENSOR_BYTES = 144
"""An input or output of the operator that is being prepared, quantisation without channels
included."""
CHANNEL_BYTES = 4


@dataclass(frozen=True, slots=True)
class KernelNeeds:
    """What the kernel of an operator keeps, and what it needs while it runs."""

    kept_bytes: int
    running_bytes: int
    requests: int


def arena_bytes(network: bytes, model: Model) -> int:
    """Return how many bytes of arena suffice for a network and its tables.

    E701 to E707 where kernels do not take an operator.
    """
    if not any(is_npu(row) for row in model.main.operators):
        origins = [model.origin(row) for row in model.main.operators]
        return _aligned(CpuKernels(network, origins).memory().least_bytes)
    needs = [_needs(model, row) for row in model.main.operators]
    requests = sum(row.requests for row in needs)
    planned = _tensors_end(model) + max(row.running_bytes for row in needs)
    kept = _structures(model) + requests * HANDLE_BYTES
    kept += sum(_aligned(row.kept_bytes) for row in needs) + _states(model)
    return max(planned, _aligned(_preparing(model, requests))) + _aligned(kept)


def variables_of(model: Model) -> int:
    """Return how many resource variables a network has."""
    return len(
        {
            (row.options["container"] or "", row.options["shared_name"] or "")
            for subgraph in model.subgraphs
            for row in subgraph.operators
            if row.kind == "VAR_HANDLE"
        }
    )


def _tensors_end(model: Model) -> int:
    """Return where tensors end: those of the compiler's plan, and the others behind it."""
    offsets = ETHOS_U.arena_offsets(model)
    ends = (
        offset + _aligned(model.main.tensors[index].size_bytes or 0)
        for index, offset in offsets.items()
    )
    elsewhere = (
        row
        for subgraph in model.subgraphs
        for row in subgraph.tensors
        if row.data is None and (subgraph.index != 0 or row.index not in offsets)
    )
    return _aligned(max(ends, default=0)) + sum(_aligned(row.size_bytes or 0) for row in elsewhere)


def _needs(model: Model, operator: Operator) -> KernelNeeds:
    """Return what an operator's kernel needs; those of the CPU are asked, one at a time."""
    if is_npu(operator):
        bases = len(operator.inputs) + len(operator.outputs)
        arrays = _aligned(bases * NPU_BASE_BYTES) + _aligned(bases * NPU_SIZE_BYTES)
        return KernelNeeds(NPU_KEPT_BYTES, arrays, NPU_REQUESTS)
    if operator.kind in VARIABLE_KINDS:
        assigned = model.main.present(operator.inputs)[1:]
        sizes = sum(_aligned(row.size_bytes or 0) for row in assigned)
        return KernelNeeds(NPU_KEPT_BYTES + sizes, 0, 0)
    part = extract(model.record, [operator.index])
    kernels = CpuKernels(part.network, [model.origin(operator)])
    found = kernels.memory()
    tensors = {row.index: row for row in _touched(model.main, operator)}.values()
    planned = sum(_aligned(row.size_bytes or 0) for row in tensors if _is_planned(row))
    shown = len(part.inputs) + len(part.outputs)
    structures = (
        INTERPRETER_BYTES
        + OPERATOR_BYTES
        + TENSOR_BYTES * len(tensors)
        + SHOWN_TENSOR_BYTES * shown
    )
    running = max(found.planned_bytes - planned, 0)
    requests = REQUESTS_PER_OPERATOR if running else 0
    return KernelNeeds(max(found.kept_bytes - structures, 0), running, requests)


def _is_planned(tensor: Tensor) -> bool:
    return tensor.data is None and not tensor.variable


def _touched(subgraph: Subgraph, operator: Operator) -> Sequence[Tensor]:
    return subgraph.present((*operator.inputs, *operator.outputs))


def _structures(model: Model) -> int:
    """Return what the interpreter keeps besides what kernels do."""
    tensors = sum(len(row.tensors) for row in model.subgraphs)
    operators = sum(len(row.operators) for row in model.subgraphs)
    shown = model.main.present((*model.main.inputs, *model.main.outputs))
    return (
        INTERPRETER_BYTES
        + SUBGRAPH_BYTES * len(model.subgraphs)
        + _aligned(TENSOR_BYTES * tensors)
        + _aligned(OPERATOR_BYTES * operators)
        + (SHOWN_TENSOR_BYTES + QUANTISATION_BYTES + HANDLE_BYTES) * len(shown)
        + CHANNEL_BYTES * sum(_channels(row) for row in shown)
        + VARIABLE_BYTES * variables_of(model)
    )


def _channels(tensor: Tensor) -> int:
    return 0 if tensor.quantization is None else len(tensor.quantization.scale)


def _states(model: Model) -> int:
    """Return the bytes of state that the compiler has not placed: the interpreter keeps it."""
    offsets = ETHOS_U.arena_offsets(model)
    return sum(
        _aligned(row.size_bytes or 0)
        for row in model.main.tensors
        if row.variable and offsets.get(row.index, NOT_IN_ARENA) == NOT_IN_ARENA
    )


def _preparing(model: Model, requests: int) -> int:
    """Return what is needed where the plan will be, before it is there."""
    asked = REQUEST_BYTES * (requests + REQUESTS_PER_OPERATOR)
    shaped = max(
        (
            sum(
                SHAPED_TENSOR_BYTES + CHANNEL_BYTES * _channels(row)
                for row in _touched(subgraph, operator)
            )
            for subgraph in model.subgraphs
            for operator in subgraph.operators
        ),
        default=0,
    )
    tensors = sum(len(row.tensors) for row in model.subgraphs)
    return asked + max(shaped, PLANNED_BYTES * (tensors + requests))


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
