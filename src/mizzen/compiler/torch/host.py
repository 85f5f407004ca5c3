"""What the host does of an exported PyTorch program: its edge, and what PyTorch computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from mizzen.artifact.host_steps import (
    DequantizeStep,
    NarrowStep,
    QuantizeStep,
    TorchStep,
    WidenStep,
)
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import Step
from mizzen.compiler.assembly import HostPart, Number
from mizzen.compiler.torch.placement import DEQUANTIZE, NARROW, WIDEN, is_edge
from mizzen.diagnostics import Origin
from mizzen.frontends.torch.int_lowering.int_context import signed_offset
from mizzen.frontends.torch.int_lowering.int_extract import extract
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.frontends.torch.narrowing import SOURCE
from mizzen.graph import Graph, Operation
from mizzen.ops.control_flow import Custom


@dataclass(frozen=True, eq=False)
class TorchLowering:
    """A lowered program, as it is put together."""

    lowered: Lowered

    @property
    def name(self) -> str:
        """What the program is called."""
        return self.lowered.program.name

    @property
    def file(self) -> str:
        """The same: a program need not come from a file."""
        return self.lowered.program.name

    @property
    def graph(self) -> Graph:
        """The graph of all of it."""
        return self.lowered.graph

    @property
    def origins(self) -> Mapping[int, Origin]:
        """Group to the node that it is named by."""
        return self.lowered.origins

    @property
    def states(self) -> tuple[Array, ...]:
        """What the buffers that the program changes are at first."""
        program = self.lowered.program
        return tuple(program.array(state.read) for state in program.states)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Keys of the dict that the program gives; numbers where it gives none."""
        return self.lowered.program.output_names

    @property
    def group_of_place(self) -> Mapping[int, int]:
        """A node's place in the program to its group."""
        places = {node: place for place, node in enumerate(self.lowered.program.nodes)}
        return {
            places[node]: group
            for group, nodes in self.lowered.nodes.items()
            for node in nodes
            if node in places
        }

    def is_edge(self, operation: Operation) -> TypeGuard[Custom]:
        """Whether an operation only brings numbers into the form that an NPU takes, or gives."""
        return is_edge(operation)

    def is_taken_before(self, edge: Custom) -> bool:
        """Whether PyTorch takes what an edge takes: it makes real numbers of integers itself."""
        return edge.operator_name in (DEQUANTIZE, WIDEN)

    def title(self, group: int) -> str:
        """Say where an operator is: its module and line, else the name in the exported graph."""
        origin = self.lowered.origins[group]
        place = ", ".join(part for part in (origin.module, origin.source) if part)
        return place or origin.name or ""

    def edge_step(self, edge: Custom, number: Number) -> Step:
        """Return the step that computes an edge."""
        match edge.operator_name:
            case name if name == DEQUANTIZE:
                return self._dequantize(edge, number)
            case name if name == NARROW:
                return self._narrow(edge, number)
            case name if name == WIDEN:
                return WidenStep(number(edge.input_list[0]), number(edge.result))
            case _:
                return self._quantize(edge, number)

    def _narrow(self, edge: Custom, number: Number) -> Step:
        bound = self.lowered.node_of[edge.result].meta.get(SOURCE)
        return NarrowStep(
            number(edge.input_list[0]),
            number(edge.result),
            None if bound is None else bound.size,
            bound is not None and bound.counts_back,
        )

    def _quantize(self, edge: Custom, number: Number) -> Step:
        node = self.lowered.node_of[edge.result]
        _, scale, zero_point, low, high = node.args[:5]
        offset = signed_offset(node)
        return QuantizeStep(
            number(edge.input_list[0]),
            number(edge.result),
            float(scale),
            int(zero_point) - offset,
            int(low) - offset,
            int(high) - offset,
            edge.result.dtype.numpy,
        )

    def _dequantize(self, edge: Custom, number: Number) -> Step:
        source = edge.input_list[0]
        assert source.quantization is not None
        quantization = source.quantization
        return DequantizeStep(
            number(source), number(edge.result), quantization.scale, quantization.zero_point
        )

    def host_step(self, part: HostPart, number: Number) -> Step:
        """Return the step of a part that PyTorch computes."""
        own = extract(self.lowered, part.groups, part.outputs)
        return TorchStep(
            own.module,
            tuple(number(value) for value in own.inputs),
            tuple(number(value) for value in own.outputs),
            part.kinds,
            tuple(_example(self.lowered.node_of[value]) for value in own.inputs),
        )


def _example(node: Any) -> Any:
    """Return a tensor like a node's in the graph, to export the part with."""
    import torch

    meta = node.meta["val"]
    return torch.zeros(tuple(meta.shape), dtype=torch.int8 if signed_offset(node) else meta.dtype)
