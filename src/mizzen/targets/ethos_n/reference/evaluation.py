"""Evaluating a network, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.network import Array, Network, Node, Operand
from mizzen.targets.ethos_n.operations import (
    Addition,
    Concatenation,
    Constant,
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    Input,
    LeakyRelu,
    MeanXy,
    Output,
    Pooling,
    PoolingType,
    Relu,
    Requantize,
    Resize,
    Sigmoid,
    Split,
    Tanh,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.reference import mce, ple
from mizzen.targets.ethos_n.reference.mce import Finish, Numbers
from mizzen.targets.ethos_n.reference.movement import moved
from mizzen.targets.ethos_n.tensors import Padding, Stride, TensorInfo

MEAN_EXTENTS = (7, 8)
WEIGHTED = (Convolution, DepthwiseConvolution, TransposeConvolution, FullyConnected)
SUMMED = (*WEIGHTED, Resize)
AROUND = Padding(1, 1, 1, 1)


def evaluate(network: Network, inputs: Sequence[Array]) -> list[Array]:
    """Give what a network makes of a batch: an array [N, H, W, C] for each output.

    Where a requantisation is the only user of what a sum of weights gives, perhaps behind clamps
    and then a pooling, the sum is rounded once, to the requantisation's own numbers; so it is of
    what a concatenation requantises, of two requantisations in a row, and of the parts of a
    requantised concatenation. `evaluate_apart` rounds at each operation, and differs from this by
    at most a step of the output where that happens.

    inputs  an array [N, H, W, C] for each input of the network, in its shape but for N

    E980 for inputs that are not the network's, E981 for an operation that has no integer meaning in
    release 23.02.
    """
    users = network.users()
    once = frozenset(operand for operand, nodes in users.items() if len(nodes) == 1)
    return _Evaluation(network, once).of(inputs)


def evaluate_apart(network: Network, inputs: Sequence[Array]) -> list[Array]:
    """Give the same, each operation rounded for itself."""
    return _Evaluation(network, frozenset()).of(inputs)


@dataclass(slots=True)
class _Evaluation:
    """One evaluation: everything that has been computed.

    ridden  what a requantisation may be made together with, if that is its user
    """

    network: Network
    ridden: frozenset[Operand]
    known: dict[Operand, Numbers] = field(default_factory=dict[Operand, Numbers])

    def of(self, arrays: Sequence[Array]) -> list[Array]:
        _require_inputs(self.network.inputs, arrays)
        for operand, array in zip(self.network.inputs, arrays, strict=True):
            self.known[operand] = array.astype(np.int64)
        for node in self.network:
            if not isinstance(node.operation, Input | Constant | Output):
                made = self._made(node)
                self.known.update(zip(node.outputs, made, strict=True))
        return [self._value(row).astype(row.info.data_type.dtype) for row in self.network.outputs]

    def _value(self, operand: Operand) -> Numbers:
        """Give the numbers of what has been computed, or of a constant as one of a batch."""
        constant = self.network.data_of(operand)
        return self.known[operand] if constant is None else constant.astype(np.int64)

    def _made(self, node: Node) -> list[Numbers]:
        """Give the outputs of an operation whose inputs have been computed."""
        if isinstance(node.operation, Split):
            ends = np.cumsum(node.operation.sizes)[:-1]
            return np.split(self._value(node.inputs[0]), ends, node.operation.axis)
        if isinstance(node.operation, SUMMED):
            return [self._summed(node, Finish.of(node.operand.info))]
        match node.operation:
            case Requantize():
                return [self._requantized(node.inputs[0], node.operand.info)]
            case Concatenation(axis):
                parts = [self._part(operand, node.operand.info) for operand in node.inputs]
                return [_joined(parts, axis)]
            case Addition():
                values = [self._value(operand) for operand in node.inputs]
                return [_added(node, *values)]
            case _:
                return [_of_one(node, self._value(node.inputs[0]))]

    def _summed(self, node: Node, finish: Finish) -> Numbers:
        """Give what the compute engine makes of an operation's inputs."""
        operand, *constants = node.inputs
        numbers = self._value(operand)
        if isinstance(node.operation, Resize):
            size = node.operation.height, node.operation.width
            planes = mce.upsampled(numbers, node.operation.algorithm, *size)
            return mce.copied(planes, operand.info.quantization, finish)
        assert isinstance(node.operation, WEIGHTED)
        bias, weights = (self.network.data_of(row) for row in constants)
        if bias is None or weights is None:
            raise fail("E981", f"{node.kind} must have constants, not what is computed")
        infos = operand.info, constants[0].info, constants[1].info
        return mce.weighted(node.operation, infos, numbers, (bias, weights), finish)

    def _part(self, operand: Operand, output: TensorInfo) -> Numbers:
        """Give a part of a concatenation, in the quantisation of the whole."""
        if operand.info.quantization == output.quantization:
            return self._value(operand)
        return self._requantized(operand, output)

    def _requantized(self, operand: Operand, to: TensorInfo) -> Numbers:
        """Give an operand in another type and quantisation, made directly where that may be."""
        node = self.network[operand.operation_id]
        if operand in self.ridden:
            match node.operation:
                case Requantize() if _covers(operand.info, to):
                    return self._requantized(node.inputs[0], to)
                case Concatenation(axis):
                    return _joined([self._requantized(row, to) for row in node.inputs], axis)
                case Pooling() | MeanXy() if not _is_average_3x3(node):
                    return _pooled(node, self._finished(node.inputs[0], to))
                case _:
                    pass
        return self._finished(operand, to)

    def _finished(self, operand: Operand, to: TensorInfo) -> Numbers:
        """Give an operand in another type and quantisation, with the sum of weights under it.

        That is the one that its clamps are made with, or else a copy.
        """
        bounds = Finish.of(operand.info)
        while operand in self.ridden:
            node = self.network[operand.operation_id]
            if isinstance(node.operation, SUMMED):
                return self._summed(node, bounds.requantized(to))
            if not isinstance(node.operation, Relu):
                break
            bounds = bounds.bounded(node.operation.lower, node.operation.upper)
            operand = node.inputs[0]
        numbers = self._value(operand)
        return mce.copied(numbers, operand.info.quantization, bounds.requantized(to))


def _require_inputs(inputs: Sequence[Operand], arrays: Sequence[Array]) -> None:
    if len(inputs) != len(arrays):
        raise fail(
            "E980", f"a network of {len(inputs)} inputs must have as many arrays, not {len(arrays)}"
        )
    counts = {len(array) if array.ndim else 0 for array in arrays}
    for at, (operand, array) in enumerate(zip(inputs, arrays, strict=True)):
        shape, dtype = operand.info.shape, operand.info.data_type.dtype
        if array.shape[1:] != shape[1:] or array.dtype != dtype or len(counts) != 1:
            raise fail(
                "E980",
                f"input {at} must be {dtype} of shape (N, {', '.join(map(str, shape[1:]))}), "
                f"with one N for all inputs; it is {array.dtype} of {array.shape}",
            )


def _joined(parts: Sequence[Numbers], axis: int) -> Numbers:
    """Put maps behind one another, constants among them once for each of the batch."""
    count = max(len(part) for part in parts)
    alike = [np.broadcast_to(part, (count, *part.shape[1:])) for part in parts]
    return np.concatenate(alike, axis)


def _covers(first: TensorInfo, second: TensorInfo) -> bool:
    """Say whether all reals that the second's numbers stand for are within those of the first."""

    def reals(info: TensorInfo) -> tuple[float, float]:
        scale, zero_point = info.quantization.scale, info.quantization.zero_point
        kind = info.data_type
        return scale * (kind.lowest - zero_point), scale * (kind.highest - zero_point)

    (low, high), (lower, higher) = reals(first), reals(second)
    return low <= lower and higher <= high


def _added(node: Node, first: Numbers, second: Numbers) -> Numbers:
    left, right = (operand.info.quantization for operand in node.inputs)
    info = node.operand.info
    return ple.added(first, second, (left, right), info.quantization, info.data_type)


def _of_one(node: Node, numbers: Numbers) -> Numbers:
    """Give what an operation makes of one feature map without any sum of weights."""
    info = node.inputs[0].info
    kind, quantization = info.data_type, info.quantization
    match node.operation:
        case Relu(lower, upper):
            bounds = Finish.of(info).bounded(lower, upper)
            return np.clip(numbers, bounds.lower, bounds.upper)
        case LeakyRelu(alpha, output):
            return ple.leaky(numbers, alpha, quantization, output, kind)
        case Sigmoid():
            return ple.logistic(numbers, quantization, 1, kind)
        case Tanh():
            return ple.logistic(numbers, quantization, 2, kind)
        case Pooling() | MeanXy():
            return _pooled(node, numbers)
        case _:
            return moved(node, numbers)


def _is_average_3x3(node: Node) -> bool:
    operation = node.operation
    return isinstance(operation, Pooling) and (
        operation.type is PoolingType.AVG and not _is_mean_of_plane(node)
    )


def _is_mean_of_plane(node: Node) -> bool:
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


def _pooled(node: Node, numbers: Numbers) -> Numbers:
    if _is_mean_of_plane(node):
        return ple.mean_of_plane(numbers)
    match node.operation:
        case Pooling(_, _, _, PoolingType.MAX):
            return ple.largest_of_windows(numbers, node.operation, node.inputs[0].info.data_type)
        case Pooling((3, 3), stride, padding, _) if stride == Stride(1, 1) and padding == AROUND:
            return ple.average_3x3(numbers)
        case _:
            extents = node.inputs[0].info.shape[1:3]
            raise fail(
                "E981",
                f"a mean must be of 7 x 7 or 8 x 8 whole planes, or of 3 x 3 with stride 1 and "
                f"padding 1; it is {node.operation} of {extents[0]} x {extents[1]}",
                origin=node.origin,
            )
