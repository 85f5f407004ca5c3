"""What a kernel of the processor asks of the arena, measured: bounds where no row knows.

The package tflite-micro shows what its kernels take with addresses of 64 bits. That bounds those of
32 bits: every structure consists of numbers of a fixed size, of addresses and of sizes, so it and
its alignment are no larger there. Each operator is prepared alone; what the interpreter's own
structures take at least is subtracted.
"""

from __future__ import annotations

from mizzen.cpu import CpuKernels
from mizzen.export.tflm.arena.kernels import Requests
from mizzen.export.tflm.arena.structures import (
    ALIGNMENT_BYTES,
    REQUESTS_PER_OPERATOR,
    Block,
)
from mizzen.frontends.tflite import Model, Operator, Subgraph, Tensor
from mizzen.frontends.tflite.subgraphs import CALLERS, reached_from, seen_from
from mizzen.package.tflite.extract import extract

STRUCTURES_BYTES = 512 + 64
"""What an interpreter with one operator and without tensors keeps with such addresses."""
TENSOR_BYTES = 24
SHOWN_TENSOR_BYTES = 64
"""An input or output of the network, which has a structure of its own."""
LOOKS = 3
"""How often a kernel looks at its tensors; of those that have rows, none does more often."""
CONTROL = Requests(Block(8), kept=(8,), looks=1)
"""Of IF and WHILE: the numbers of two subgraphs, as the network has them and as the kernel keeps
them. Ref: tflite-micro 90b983c, kernels/if.cc, while.cc."""


def measured(model: Model, subgraph: Subgraph, operator: Operator) -> Requests:
    """Return bounds of what an operator's kernel asks for. E701 to E707 where there is none."""
    if operator.kind in CALLERS:
        return CONTROL
    seen = seen_from(model, reached_from(model, subgraph.index))
    part = extract(seen.record, [operator.index])
    memory = CpuKernels(part.network, [model.origin(operator)]).memory()
    touched = subgraph.present((*operator.inputs, *operator.outputs))
    tensors = {tensor.index: tensor for tensor in touched}.values()
    planned = sum(_aligned(tensor.size_bytes or 0) for tensor in tensors if _is_planned(tensor))
    shown = len(part.inputs) + len(part.outputs)
    structures = STRUCTURES_BYTES + TENSOR_BYTES * len(tensors) + SHOWN_TENSOR_BYTES * shown
    kept = max(memory.kept_bytes - structures, 0)
    running = max(memory.planned_bytes - planned, 0)
    blocks = (running, *(0,) * (REQUESTS_PER_OPERATOR - 1)) if running else ()
    return Requests(None, (kept,), (), blocks, LOOKS)


def _is_planned(tensor: Tensor) -> bool:
    return tensor.data is None and not tensor.variable


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
