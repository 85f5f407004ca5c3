"""How far integers are off PyTorch's own: quantised, lowered, computed by the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.frontends.torch.int_lowering.int_context import noted
from mizzen.frontends.torch.int_lowering.int_lower import Lowered, lower
from mizzen.frontends.torch.narrowing import read
from mizzen.graph import Array, Operation
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits
from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from mizzen.reference import evaluate

LIMITS = WindowLimits(longest_stride=3, largest_kernel=64)
EDGES = ("torch.quantize", "torch.dequantize")
CALLS = 3


class Computes(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


@dataclass(frozen=True, eq=False)
class Found:
    """A lowered program, and what PyTorch computes of it."""

    lowered: Lowered
    exported: torch.export.ExportedProgram
    inputs: tuple[Tensor, ...]

    @property
    def on_cpu(self) -> dict[str, str]:
        """What PyTorch computes, and why."""
        return {
            row.operator_name.removeprefix("torch."): noted(row).reason
            for row in self.lowered.graph
            if isinstance(row, Custom) and row.operator_name not in EDGES
        }

    @property
    def kinds(self) -> list[str]:
        """The operations of the graph that compute something."""
        return [row.kind for row in self.lowered.graph
                if row.kind not in ("CONST", "CONST_SHAPE", "CUSTOM")]  # fmt: skip

    def kinds_before(self, output: int) -> set[str]:
        """Return the kinds of the operations behind an output, PyTorch's own by their names."""
        graph = self.lowered.graph
        pending, seen = [graph.outputs[output]], set[Operation]()
        while pending:
            operation = pending.pop().producer
            if operation is not None and operation not in seen:
                seen.add(operation)
                pending += operation.operands
        names = {row.operator_name if isinstance(row, Custom) else row.kind for row in seen}
        return names - {"CONST", "CONST_SHAPE", *EDGES}

    def steps_off(self) -> float:
        """Return the most that an output is off PyTorch's, in steps of its scale."""
        return max(self.steps_off_each())

    def steps_off_each(self) -> list[float]:
        """Return the most that each output is off PyTorch's, in steps of its scale."""
        given = [each.numpy() for each in self.inputs]
        found = evaluate(self.lowered.graph, given, custom=self._edge)
        with torch.no_grad():
            wanted = leaves(self.exported.module(check_guards=False)(*self.inputs))
        off: list[float] = []
        for value, one, other in zip(self.lowered.graph.outputs, found, wanted, strict=True):
            assert one.shape == tuple(other.shape)
            assert value.producer is not None
            quantization = value.producer.operands[0].quantization
            scale = 1.0 if quantization is None else quantization.scale
            steps = np.abs(one.astype(np.float64) - other.numpy().astype(np.float64)) / scale
            off.append(float(np.rint(steps).max(initial=0)))
        return off

    def _edge(self, operation: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        """Round at the program's edges as PyTorch does."""
        (array,) = operands
        if operation["operator_name"] == "torch.dequantize":
            quantization = operation.operands[0].quantization
            assert quantization is not None
            centred = array.astype(np.float32) - np.float32(quantization.zero_point)
            return [centred * np.float32(quantization.scale)]
        node = self.lowered.node_of[operation.result]
        return [node.target(torch.from_numpy(array), *node.args[1:]).numpy()]


def leaves(outputs: Any) -> list[Tensor]:
    """Return the tensors of a result."""
    return [outputs] if isinstance(outputs, Tensor) else [row for each in outputs
                                                          for row in leaves(each)]  # fmt: skip


def lowered(module: Any, *inputs: Tensor, bits: int = 8) -> Found:
    """Quantise a module or function, calibrated by inputs like those given, and lower it."""
    torch.manual_seed(1)
    module = module if isinstance(module, nn.Module) else Computes(module)
    config = (
        get_symmetric_quantization_config()
        if bits == 8
        else get_symmetric_a16w8_quantization_config()
    )
    exported = torch.export.export(module.eval(), inputs)
    quantizer = EthosUQuantizer("ethos-u85-256").set_global(config)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for scale in np.linspace(0.5, 1.0, CALLS).tolist():
            prepared(*(each * scale if each.is_floating_point() else each for each in inputs))
    program = torch.export.export(convert_pt2e(prepared), inputs)
    return Found(lower(read(program), LIMITS), program, inputs)


def image(channels: int = 4, size: int = 6) -> Tensor:
    """Return a random image."""
    return torch.randn(1, channels, size, size, generator=torch.Generator().manual_seed(3))
