"""A network for the Support Library: operations in the order in which they were added.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`CreateNetwork`, `Add...`, `GetOperand`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_n.operations import Constant, Input, Operation, Output, output_infos
from mizzen.targets.ethos_n.tensors import DataFormat, TensorInfo

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Operand:
    """One output of an operation of a network."""

    operation_id: int
    output_index: int
    info: TensorInfo


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operation of a network.

    id       its place in the order of additions; constants count too
    data     a constant's numbers, in its info's shape and type
    origin   where it comes from in the user's model
    """

    id: int
    operation: Operation
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    data: Array | None = None
    origin: Origin | None = None

    @property
    def operand(self) -> Operand:
        """The only output."""
        (operand,) = self.outputs
        return operand

    @property
    def kind(self) -> str:
        """The operation's name."""
        return type(self.operation).__name__


class Network:
    """Operations, each after those that it takes its inputs from."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, operation_id: int) -> Node:
        return self._nodes[operation_id]

    def add(self, operation: Operation, *inputs: Operand, origin: Origin | None = None) -> Node:
        """Add an operation of feature maps and constants that are in the network already."""
        return self._append(operation, inputs, None, origin)

    def add_input(self, info: TensorInfo, origin: Origin | None = None) -> Operand:
        """Add a feature map that an inference takes."""
        return self._append(Input(info), (), None, origin).operand

    def add_constant(self, info: TensorInfo, data: Array, origin: Origin | None = None) -> Operand:
        """Add weights or a bias. E901 unless `data` has the shape and the type of `info`."""
        if data.shape != info.shape or data.dtype != info.data_type.dtype:
            raise fail(
                "E901",
                f"a constant must have shape {info.shape} and type {info.data_type.dtype}, "
                f"and has {data.shape} and {data.dtype}",
                origin=origin,
            )
        return self._append(Constant(info), (), data, origin).operand

    def add_output(
        self,
        operand: Operand,
        format: DataFormat = DataFormat.NHWC,
        origin: Origin | None = None,
    ) -> Node:
        """Make a feature map one that an inference gives."""
        return self._append(Output(format), (operand,), None, origin)

    def _append(
        self,
        operation: Operation,
        inputs: tuple[Operand, ...],
        data: Array | None,
        origin: Origin | None,
    ) -> Node:
        infos = output_infos(operation, [operand.info for operand in inputs])
        place = len(self._nodes)
        outputs = tuple(Operand(place, index, info) for index, info in enumerate(infos))
        node = Node(place, operation, inputs, outputs, data, origin)
        self._nodes.append(node)
        return node

    def data_of(self, operand: Operand) -> Array | None:
        """Return a constant's numbers; None for what is computed."""
        return self._nodes[operand.operation_id].data

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """What an inference takes, in the order of addition."""
        return tuple(node.operand for node in self if isinstance(node.operation, Input))

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """What an inference gives, in the order of addition."""
        return tuple(node.inputs[0] for node in self if isinstance(node.operation, Output))

    def users(self) -> Mapping[Operand, Sequence[Node]]:
        """Return every operand's users, once for each input that it is."""
        found: dict[Operand, list[Node]] = {
            operand: [] for node in self for operand in node.outputs
        }
        for node in self:
            for operand in node.inputs:
                found[operand].append(node)
        return found
