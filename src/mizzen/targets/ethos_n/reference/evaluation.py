"""Evaluating a network, a batch at a time, with what only moves numbers or reads them anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.network import (
    Addition,
    Array,
    Concatenation,
    Constant,
    DepthToSpace,
    Input,
    LeakyRelu,
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
    Reshape,
    Resize,
    Sigmoid,
    Split,
    StandalonePadding,
    Tanh,
    Transpose,
)
from mizzen.targets.ethos_n.reference import mce_arithmetic as mce
from mizzen.targets.ethos_n.reference import ple_arithmetic as ple
from mizzen.targets.ethos_n.reference.mce_arithmetic import Finish, Numbers
from mizzen.targets.ethos_n.reference.roundings import (
    SUMMED,
    WEIGHTED,
    Lying,
    Roundings,
    concatenated_lying,
    goes_before,
    is_mean_of_plane,
    keeps_numbers,
)
from mizzen.targets.ethos_n.tensors import Padding, Stride, TensorInfo


def moved(node: Node, numbers: Numbers) -> Numbers:
    """Return the numbers [N, H, W, C] as an operation moves them.

    E981 for any other operation.
    """
    match node.operation:
        case ReinterpretQuantization():
            return numbers
        case Reshape(shape):
            return numbers.reshape(len(numbers), *shape[1:])
        case Transpose(permutation):
            return numbers.transpose(permutation)
        case DepthToSpace(block):
            return _blocks_to_planes(numbers, block)
        case StandalonePadding(padding):
            around = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
            zero_point = node.inputs[0].info.quantization.zero_point
            return np.pad(numbers, around, constant_values=zero_point)
        case _:
            raise fail(
                "E981",
                f"{node.kind} must be an operation that release 23.02 can run; it is none",
                origin=node.origin,
            )


def _blocks_to_planes(numbers: Numbers, block: int) -> Numbers:
    """Make planes of channels: the element at (y, x) of a block is in channels (y * block + x)."""
    count, height, width, channels = numbers.shape
    split = numbers.reshape(count, height, width, block, block, channels // block**2)
    planes = split.transpose(0, 1, 3, 2, 4, 5)
    return planes.reshape(count, height * block, width * block, -1)


Steps = tuple[TensorInfo, ...]
"""Types and quantisations that numbers go through one after the other, at least one.

They are rounded only in the last, and bounded in all.
"""
AROUND = Padding(1, 1, 1, 1)


def evaluate(network: Network, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of a network for a batch: an array [N, H, W, C] for each output.

    Where Arm's compiler does several roundings as one (see `roundings`), so does this: a sum of
    weights that is requantised is rounded once, to the requantisation's own numbers, and bounded to
    what it would be without it; so are requantisations in a row, and the parts of a requantised
    concatenation. But the compiler forgets the bounds of the first of two requantisations, and it
    requantises before a reinterpretation what comes after it, and here both count.

    A network that is compiled with strict precision is rounded at each operation, which
    `evaluate_apart` does.

    inputs  an array [N, H, W, C] for each input of the network, in its shape but for N

    E980 for inputs that are not the network's, E981 for an operation that has no integer meaning in
    release 23.02.
    """
    return _Evaluation(network, Roundings.of(network)).of(inputs)


def evaluate_apart(network: Network, inputs: Sequence[Array]) -> list[Array]:
    """Return the same, each operation rounded for itself."""
    return _Evaluation(network, Roundings(network, {})).of(inputs)


@dataclass(slots=True)
class _Evaluation:
    """One evaluation: everything that has been computed."""

    network: Network
    roundings: Roundings
    known: dict[Operand, Numbers] = field(default_factory=dict[Operand, Numbers])

    def of(self, arrays: Sequence[Array]) -> list[Array]:
        _require_inputs(self.network.inputs, arrays)
        for operand, array in zip(self.network.inputs, arrays, strict=True):
            self.known[operand] = array.astype(np.int64)
        for node in self.network:
            if not isinstance(node.operation, Input | Constant | Output):
                made = self._made(node)
                self.known.update(zip(node.outputs, made, strict=True))
        return [
            self._value(output).astype(output.info.data_type.dtype)
            for output in self.network.outputs
        ]

    def _value(self, operand: Operand) -> Numbers:
        """Return the numbers of what has been computed, or of a constant as one of a batch."""
        constant = self.network.data_of(operand)
        return self.known[operand] if constant is None else constant.astype(np.int64)

    def _made(self, node: Node) -> list[Numbers]:
        """Return the outputs of an operation whose inputs have been computed."""
        if isinstance(node.operation, Split):
            ends = np.cumsum(node.operation.sizes)[:-1]
            return np.split(self._value(node.inputs[0]), ends, node.operation.axis)
        if isinstance(node.operation, SUMMED):
            return [self._summed(node, Finish.of(node.operand.info))]
        match node.operation:
            case Requantize():
                steps = (node.operand.info,)
                into = self.roundings.concatenated_by(node.operand)
                return [self._requantized(node.inputs[0], steps, Lying.BRICKS, into)]
            case Concatenation(axis):
                parts = [self._part(operand, node) for operand in node.inputs]
                return [_joined(parts, axis)]
            case Addition():
                values = [self._value(operand) for operand in node.inputs]
                return [_added(node, *values)]
            case _:
                return [_of_one(node, self._value(node.inputs[0]))]

    def _summed(self, node: Node, finish: Finish) -> Numbers:
        """Return the compute engine's result for an operation's inputs."""
        operand, *constants = node.inputs
        numbers = self._value(operand)
        if isinstance(node.operation, Resize):
            size = node.operation.height, node.operation.width
            planes = mce.upsampled(numbers, node.operation.algorithm, *size)
            return mce.copied(planes, operand.info.quantization, finish)
        assert isinstance(node.operation, WEIGHTED)
        bias, weights = (self.network.data_of(constant) for constant in constants)
        if bias is None or weights is None:
            raise fail("E981", f"{node.kind} must have constants, not what is computed")
        infos = operand.info, constants[0].info, constants[1].info
        return mce.weighted(node.operation, infos, numbers, (bias, weights), finish)

    def _part(self, operand: Operand, concatenation: Node) -> Numbers:
        """Return a part of a concatenation, in the quantisation of the whole."""
        if operand.info.quantization == concatenation.operand.info.quantization:
            return self._value(operand)
        steps = (concatenation.operand.info,)
        return self._requantized(operand, steps, concatenated_lying(concatenation), concatenation)

    def _requantized(
        self, operand: Operand, steps: Steps, lying: Lying, into: Node | None = None
    ) -> Numbers:
        """Return an operand in the last step's numbers, made directly where that may be.

        lying  how it lies when it is requantised
        into   the concatenation that it is put into then, as it lies
        """
        if operand not in self.roundings.alone:
            return self._finished(operand, steps)
        node = self.network[operand.operation_id]
        match node.operation:
            case Requantize() if lying is Lying.BRICKS:
                steps = _through(operand.info, steps)
                return self._requantized(node.inputs[0], steps, lying, into)
            case Requantize() if self.roundings.finds_a_sum(node.inputs[0]):
                return self._requantized(node.inputs[0], (operand.info, *steps), Lying.BRICKS)
            case Concatenation(axis) if concatenated_lying(node) is lying and goes_before(
                node, into
            ):
                parts = [self._part_of(part, node, steps) for part in node.inputs]
                return _joined(parts, axis)
            case Reshape(shape) if lying is Lying.ROWS:
                numbers = self._requantized(node.inputs[0], steps, lying)
                return numbers.reshape(len(numbers), *shape[1:])
            case ReinterpretQuantization() if self._is_nothing(node, lying):
                return self._requantized(node.inputs[0], steps, lying)
            case _:
                return self._behind_kernels(operand, steps)

    def _is_nothing(self, node: Node, lying: Lying) -> bool:
        """Say whether a reinterpretation is of the same numbers, where they lie as before."""
        (operand,) = node.inputs
        is_same = operand.info.quantization == node.operand.info.quantization
        return is_same and self.roundings.lying(operand) is lying

    def _behind_kernels(self, operand: Operand, steps: Steps) -> Numbers:
        """Return an operand that a pooling may have made, which is requantised before that."""
        node = self.network[operand.operation_id]
        if keeps_numbers(node):
            return _pooled(node, self._before_pooling(node.inputs[0], steps))
        return self._finished(operand, steps)

    def _part_of(self, operand: Operand, concatenation: Node, steps: Steps) -> Numbers:
        """Return a part of a concatenation that is requantised."""
        whole = concatenation.operand.info
        is_alike = operand.info.quantization == whole.quantization
        steps = steps if is_alike else _through(whole, steps)
        return self._requantized(operand, steps, concatenated_lying(concatenation), concatenation)

    def _before_pooling(self, operand: Operand, steps: Steps) -> Numbers:
        """Return the input of a requantised pooling, after the requantisation."""
        if not self.roundings.is_of_a_sum(operand):
            numbers = self._value(operand)
            return _copied(numbers, operand.info, _after(Finish.of(operand.info), steps))
        node = self.network[operand.operation_id]
        if isinstance(node.operation, Requantize):
            return self._requantized(node.inputs[0], (operand.info, *steps), Lying.BRICKS)
        return self._finished(operand, steps)

    def _finished(self, operand: Operand, steps: Steps) -> Numbers:
        """Return an operand in the last step's numbers, with the sum of weights under it.

        That is the one that its clamps are made with, or else a copy.
        """
        bounds = Finish.of(operand.info)
        while operand in self.roundings.alone:
            node = self.network[operand.operation_id]
            if isinstance(node.operation, SUMMED):
                return self._summed(node, _after(bounds, steps))
            if not isinstance(node.operation, Relu):
                break
            bounds = bounds.bounded(node.operation.lower, node.operation.upper)
            operand = node.inputs[0]
        return _copied(self._value(operand), operand.info, _after(bounds, steps))


def _through(info: TensorInfo, steps: Steps) -> Steps:
    """Put a step before others, unless it saturates nothing that the first of them keeps."""
    return steps if _covers(info, steps[0]) else (info, *steps)


def _after(bounds: Finish, steps: Steps) -> Finish:
    """Take the bounds of a sum through requantisations."""
    for info in steps:
        bounds = bounds.requantized(info)
    return bounds


def _copied(numbers: Numbers, info: TensorInfo, finish: Finish) -> Numbers:
    return mce.copied(numbers, info.quantization, finish)


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
    """Put maps one after another, constants among them once for each of the batch."""
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
    """Return the result of an operation on one feature map without any sum of weights."""
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


def _pooled(node: Node, numbers: Numbers) -> Numbers:
    if is_mean_of_plane(node):
        return ple.mean_of_plane(numbers)
    match node.operation:
        case Pooling(_, _, _, PoolingType.MAX):
            return ple.largest_of_windows(numbers, node.operation)
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
