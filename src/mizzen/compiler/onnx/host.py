"""What the host does of an ONNX network: its edge, and what ONNX Runtime computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from mizzen.artifact.host_steps import DequantizeStep, NarrowStep, WidenStep
from mizzen.artifact.interface import Array
from mizzen.artifact.onnx_steps import DivideStep, OrtStep, SignStep
from mizzen.artifact.steps import Step
from mizzen.compiler.assembly import HostPart, Number
from mizzen.compiler.onnx.parts import cut
from mizzen.diagnostics import Origin
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.lowering.notes import (
    DEQUANTIZE,
    EDGES,
    NARROW,
    QUANTIZE,
    UNSIGNED,
    WIDEN,
    step_of,
)
from mizzen.graph import Graph, Operation, Value
from mizzen.ops.control_flow import Constant, Custom


def is_edge(operation: Operation) -> TypeGuard[Custom]:
    """Whether an operation only brings numbers into the form that an NPU takes, or gives."""
    return isinstance(operation, Custom) and operation.operator_name in EDGES


@dataclass(frozen=True, eq=False)
class OnnxLowering:
    """A lowered network, as it is put together."""

    lowered: Lowered
    name: str
    file: str

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
        """None: what an ONNX network keeps, its caller keeps."""
        return ()

    @property
    def output_names(self) -> tuple[str, ...]:
        """What the user's file calls its outputs."""
        return self.lowered.model.outputs

    @property
    def group_of_place(self) -> Mapping[int, int]:
        """A node's place in the user's file to its group."""
        return {node.index: group for group, nodes in self.lowered.nodes.items() for node in nodes}

    def is_edge(self, operation: Operation) -> TypeGuard[Custom]:
        """Whether an operation only brings numbers into the form that an NPU takes, or gives."""
        return is_edge(operation)

    def title(self, group: int) -> str:
        """Say where an operator is: by the name of its node."""
        return self.lowered.origins[group].name or ""

    def is_taken_before(self, edge: Custom) -> bool:
        """Whether ONNX Runtime takes what an edge takes: the network makes the rest of it."""
        held, given = (
            self.lowered.name_of.get(value) for value in (edge.input_list[0], edge.result)
        )
        match edge.operator_name:
            case name if name == NARROW:
                return held is not None
            case name if name in (WIDEN, UNSIGNED):
                return held is not None and held == given
            case name if name == DEQUANTIZE:
                return any(
                    held == node.inputs[0] and given in node.outputs
                    for node in self.lowered.model.nodes
                    if node.kind == "DequantizeLinear"
                )
            case _:
                return False

    def edge_step(self, edge: Custom, number: Number) -> Step:
        """Return the step that computes an edge."""
        source, result = number(edge.input_list[0]), number(edge.result)
        match edge.operator_name:
            case name if name == QUANTIZE:
                step = step_of(edge)
                dtype = np.dtype(edge.result.dtype.numpy)
                return DivideStep(
                    source, result, step.scale, step.zero_point, step.low, step.high, dtype
                )
            case name if name == DEQUANTIZE:
                step = step_of(edge)
                return DequantizeStep(source, result, step.scale, step.zero_point)
            case name if name == NARROW:
                return NarrowStep(source, result, None, counts_back=False)
            case name if name == WIDEN:
                return WidenStep(source, result)
            case _:
                return SignStep(source, result)

    def host_step(self, part: HostPart, number: Number) -> Step:
        """Return the step of a part that ONNX Runtime computes."""
        inputs = dict.fromkeys(self._taken(part))
        own = cut(self.lowered, tuple(inputs), part.outputs)
        return OrtStep(
            own.network,
            tuple(number(value) for value in own.inputs),
            tuple(number(value) for value in own.outputs),
            tuple(np.dtype(value.dtype.numpy) for value in own.outputs),
            part.kinds,
        )

    def _taken(self, part: HostPart) -> Iterator[Value]:
        """Return the values from outside that a part is computed from."""
        inside = set(part.groups)
        for operation in self.graph.sorted():
            if operation.group not in inside:
                continue
            for value in operation.operands:
                maker = value.producer
                if isinstance(maker, Constant) or (maker and maker.group in inside):
                    continue
                if maker is not None and is_edge(maker) and self.is_taken_before(maker):
                    yield maker.input_list[0]
                else:
                    yield value
