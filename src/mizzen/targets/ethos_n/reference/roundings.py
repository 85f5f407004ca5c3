"""Which roundings Arm's compiler makes one of: where a requantisation rides on what is before it.

A requantisation is done by the scaling after the accumulators. It joins the sum of weights that
its input comes from if nothing else reads what lies between, and if only clamps, then other
requantisations, and one pooling that knows nothing of numbers do. What has no sum before it gets
one that copies: clamps, poolings and functions first, and so those after them find one; only then
requantisations, and of several in a row only the first, which takes the others with it.

In DRAM a map lies in brick groups of 8 x 8 x 16 elements (H, W, C), or in rows (NHWC) where parts
that are no whole groups are put together or taken apart. A change between the two ends a row of
requantisations that has no sum yet, and keeps a requantisation after a concatenation.

Where the stripes of a sum cannot be written in rows, Arm's compiler leaves the change to rows to a
pass after it, and the requantisation after that rounds again; that depends on the machine and the
rest of the network. Ours requantises before the change there, so that a sum is rounded once
whatever its stripes are.

Ref: Ethos-N driver stack 23.02, `NetworkToGraphConverter.cpp`, `Optimization.cpp`, `Graph.cpp`
(`FixGraph`), `McePlePass.cpp` (`FindLinearWorkingNodes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mizzen.targets.ethos_n.network import (
    Concatenation,
    Constant,
    Convolution,
    DepthToSpace,
    DepthwiseConvolution,
    FullyConnected,
    MeanXy,
    Network,
    Node,
    Operand,
    Output,
    Pooling,
    PoolingType,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Resize,
    Split,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.tensors import DataFormat

BRICK_GROUP = (1, 8, 8, 16)
WEIGHTED = (Convolution, DepthwiseConvolution, TransposeConvolution, FullyConnected)
SUMMED = (*WEIGHTED, Resize)
MEAN_EXTENTS = (7, 8)


class Lying(Enum):
    """How a map lies."""

    BRICKS = "brick groups"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Roundings:
    """What of a network is read by one operation only, which may so be rounded with it.

    alone  such an operand to what reads it
    """

    network: Network
    alone: Mapping[Operand, Node]

    @classmethod
    def of(cls, network: Network) -> Roundings:
        """Return those of a network as it is compiled: what nothing is made of is left out."""
        readers: dict[Operand, list[Node]] = {}
        for node in reversed(list(network)):
            if isinstance(node.operation, Output) or any(
                output in readers for output in node.outputs
            ):
                for operand in node.inputs:
                    readers.setdefault(operand, []).append(node)
        return cls(network, {each: nodes[0] for each, nodes in readers.items() if len(nodes) == 1})

    def maker(self, operand: Operand) -> Node:
        """Return the operation that an operand comes from."""
        return self.network[operand.operation_id]

    def lying(self, operand: Operand) -> Lying:
        """Return how an operand lies where it is made."""
        node = self.maker(operand)
        match node.operation:
            case Split(axis, sizes):
                return _lying(axis, sizes)
            case ReinterpretQuantization():
                return self.lying(node.inputs[0])
            case Constant(info):
                return Lying.BRICKS if info.format is DataFormat.NHWCB else Lying.ROWS
            case _:
                return Lying.BRICKS

    def concatenated_by(self, operand: Operand) -> Node | None:
        """Return the concatenation that takes an operand in brick groups as it lies, if any."""
        reader = self.alone.get(operand)
        if reader is None or not isinstance(reader.operation, Concatenation):
            return None
        return reader if concatenated_lying(reader) is Lying.BRICKS else None

    def finds_a_sum(self, operand: Operand) -> bool:
        """Say whether a requantisation of an operand need not wait for a sum of its own."""
        if operand not in self.alone:
            return False
        node = self.maker(operand)
        match node.operation:
            case Relu() | Split() | DepthToSpace():
                return True
            case Requantize():
                return self.finds_a_sum(node.inputs[0])
            case _:
                return isinstance(node.operation, SUMMED) or keeps_numbers(node)

    def is_of_a_sum(self, operand: Operand) -> bool:
        """Say whether an operand is a sum of the network's own, clamped and then requantised.

        That is what a pooling of it is made with.
        """
        node = self.maker(operand)
        while operand in self.alone and isinstance(node.operation, Requantize):
            operand = node.inputs[0]
            node = self.maker(operand)
        while operand in self.alone and isinstance(node.operation, Relu):
            operand = node.inputs[0]
            node = self.maker(operand)
        return operand in self.alone and isinstance(node.operation, (*SUMMED, DepthToSpace))


def goes_before(inner: Node, into: Node | None) -> bool:
    """Say whether requantisations after a concatenation are done to its parts.

    Not where it becomes a part of one along another axis, which needs it in one buffer.

    into  the concatenation that the requantised one is put into as it lies
    """
    assert isinstance(inner.operation, Concatenation)
    if into is None:
        return True
    assert isinstance(into.operation, Concatenation)
    return inner.operation.axis == into.operation.axis


def concatenated_lying(node: Node) -> Lying:
    """Return how the parts of a concatenation lie when they are put together."""
    assert isinstance(node.operation, Concatenation)
    axis = node.operation.axis
    return _lying(axis, [operand.info.shape[axis] for operand in node.inputs])


def _lying(axis: int, extents: Sequence[int]) -> Lying:
    whole = all(extent % BRICK_GROUP[axis] == 0 for extent in extents)
    return Lying.BRICKS if whole else Lying.ROWS


def keeps_numbers(node: Node) -> bool:
    """Say whether an operation is a pooling that a requantisation may be done before."""
    operation = node.operation
    if isinstance(operation, Pooling):
        return operation.type is PoolingType.MAX or is_mean_of_plane(node)
    return isinstance(operation, MeanXy)


def is_mean_of_plane(node: Node) -> bool:
    """Say whether an operation is the mean of whole planes of 7 x 7 or 8 x 8."""
    _, height, width, _ = node.inputs[0].info.shape
    match node.operation:
        case MeanXy():
            return height == width and height in MEAN_EXTENTS
        case Pooling(size, _, padding, PoolingType.AVG):
            edges = padding.top, padding.bottom, padding.left, padding.right
            is_whole = size == (height, width) and not any(edges)
            return is_whole and height == width and height in MEAN_EXTENTS
        case _:
            return False
