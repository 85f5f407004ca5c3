"""Networks for the Support Library: operations, what each makes of its inputs' infos, their order.

An operation's inputs are, in order: of convolutions and of `FullyConnected` the feature map, the
bias and the weights; of `Addition` and `Multiplication` two feature maps; of `Concatenation` any
number; of `Input` and `Constant` none; of all others one.

Ref: Ethos-N driver stack 23.02 and 25.03, `Support.hpp` (`CreateNetwork`, `Add...`, `GetOperand`);
`Multiplication` and `StandalonePadding` are of 25.03 only.

`as_unsigned` gives a network of signed feature maps as the same one of unsigned ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)


class PoolingType(Enum):
    """What a pooling keeps of a window."""

    MAX = "MAX"
    AVG = "AVG"


class ResizeAlgorithm(Enum):
    """How a resize finds what lies between two elements."""

    NEAREST_NEIGHBOUR = "NEAREST_NEIGHBOUR"
    BILINEAR = "BILINEAR"


@dataclass(frozen=True, slots=True)
class Input:
    """A feature map that an inference takes."""

    info: TensorInfo


@dataclass(frozen=True, slots=True)
class Constant:
    """Weights or a bias."""

    info: TensorInfo


@dataclass(frozen=True, slots=True)
class Output:
    """A feature map that an inference gives."""

    format: DataFormat = DataFormat.NHWC


@dataclass(frozen=True, slots=True)
class Convolution:
    """A 2D convolution; weights HWIO."""

    padding: Padding
    stride: Stride
    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class DepthwiseConvolution:
    """A 2D convolution of each channel for itself; weights HWIM."""

    padding: Padding
    stride: Stride
    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class TransposeConvolution:
    """A 2D convolution of the upsampled feature map; weights HWIO. The padding is taken away."""

    padding: Padding
    stride: Stride
    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A matrix product; weights HWIO with H = W = 1."""

    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Feature maps one after another along an axis, requantised where they need it."""

    axis: int
    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class Split:
    """Parts of a feature map along an axis."""

    axis: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Addition:
    """The sum of two feature maps."""

    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class Multiplication:
    """The product of two feature maps, element by element."""

    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class ReinterpretQuantization:
    """The same numbers, read with another quantisation."""

    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class Requantize:
    """The same reals in another quantisation, and type if `data_type` is given."""

    output: QuantizationInfo
    data_type: DataType | None = None


@dataclass(frozen=True, slots=True)
class Relu:
    """A clamp; the bounds are in the input's quantised numbers, 16 bits."""

    lower: int = 0
    upper: int = 255


@dataclass(frozen=True, slots=True)
class LeakyRelu:
    """max(x, alpha * x); `alpha` is float32."""

    alpha: float
    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """The logistic function."""


@dataclass(frozen=True, slots=True)
class Tanh:
    """The hyperbolic tangent."""


@dataclass(frozen=True, slots=True)
class MeanXy:
    """The mean over each plane."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """The maximum or the mean of each window, `size` as (height, width)."""

    size: tuple[int, int]
    stride: Stride
    padding: Padding
    type: PoolingType


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in other extents."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class DepthToSpace:
    """Channels to blocks of each plane."""

    block: int


@dataclass(frozen=True, slots=True)
class SpaceToDepth:
    """Blocks of each plane to channels."""

    block: int


@dataclass(frozen=True, slots=True)
class Transpose:
    """Dimension d of the output is dimension `permutation[d]` of the input."""

    permutation: Shape


@dataclass(frozen=True, slots=True)
class Resize:
    """Planes of another size."""

    algorithm: ResizeAlgorithm
    height: int
    width: int
    output: QuantizationInfo


@dataclass(frozen=True, slots=True)
class StandalonePadding:
    """Zero points around each plane."""

    padding: Padding


@dataclass(frozen=True, slots=True)
class EstimateOnly:
    """An operation that only a performance estimate can have: its outputs, and the reason."""

    outputs: tuple[TensorInfo, ...]
    reason: str


Operation = (
    Input | Constant | Output | Convolution | DepthwiseConvolution | TransposeConvolution
    | FullyConnected | Concatenation | Split | Addition | Multiplication | ReinterpretQuantization
    | Requantize | Relu | LeakyRelu | Sigmoid | Tanh | MeanXy | Pooling | Reshape | DepthToSpace
    | SpaceToDepth | Transpose | Resize | StandalonePadding | EstimateOnly
)  # fmt: skip
Weighted = Convolution | DepthwiseConvolution | TransposeConvolution | FullyConnected

SIGMOID_SCALE = 1 / 256
TANH_SCALE = 1 / 128
"""The scales of what `Sigmoid` and `Tanh` give."""


@dataclass(frozen=True, slots=True)
class Query:
    """Whether an operation of such inputs is supported; inputs as above."""

    operation: Operation
    inputs: tuple[TensorInfo, ...]


def output_infos(operation: Operation, inputs: Sequence[TensorInfo]) -> tuple[TensorInfo, ...]:
    """Return the infos of what an operation makes of its inputs, as if it were supported.

    Extents that would be negative are 0, as are those of axes that there are not, and of blocks of
    0. Nothing is checked: that is what support queries are for.
    """
    match operation:
        case Input(info) | Constant(info):
            return (info,)
        case EstimateOnly(outputs):
            return outputs
        case Output():
            return ()
        case Split(axis, sizes):
            return tuple(_with_extent(inputs[0], axis, size) for size in sizes)
        case Concatenation(axis, output):
            extent = sum(_extent(info.shape, axis) for info in inputs)
            return (replace(_with_extent(inputs[0], axis, extent), quantization=output),)
        case Convolution() | DepthwiseConvolution() | TransposeConvolution() | FullyConnected():
            return (_weighted(operation, inputs[0], inputs[2]),)
        case Addition(output) | Multiplication(output):
            first, second = inputs
            n, h, w, c = map(max, zip(first.shape, second.shape, strict=True))
            return (TensorInfo((n, h, w, c), first.data_type, DataFormat.NHWC, output),)
        case _:
            return (_of_one(operation, inputs[0]),)


def _with_extent(info: TensorInfo, axis: int, extent: int) -> TensorInfo:
    n, h, w, c = (extent if at == axis else old for at, old in enumerate(info.shape))
    return replace(info, shape=(n, h, w, c))


def _extent(shape: Shape, axis: int) -> int:
    return shape[axis] if 0 <= axis < len(shape) else 0


def _weighted(operation: Weighted, info: TensorInfo, weights: TensorInfo) -> TensorInfo:
    kernel_height, kernel_width, inputs, outputs = weights.shape
    n, height, width, _ = info.shape
    match operation:
        case FullyConnected(output):
            return TensorInfo((n, 1, 1, outputs), info.data_type, info.format, output)
        case TransposeConvolution(padding, stride, output):
            h = height * stride.y + kernel_height - stride.y - padding.top - padding.bottom
            w = width * stride.x + kernel_width - stride.x - padding.left - padding.right
        case Convolution(padding, stride, output) | DepthwiseConvolution(padding, stride, output):
            h = _windows(height, padding.top + padding.bottom, kernel_height, stride.y)
            w = _windows(width, padding.left + padding.right, kernel_width, stride.x)
    channels = inputs * outputs if isinstance(operation, DepthwiseConvolution) else outputs
    return replace(info, shape=(n, max(h, 0), max(w, 0), channels), quantization=output)


def _windows(extent: int, padding: int, size: int, stride: int) -> int:
    """Count the positions of a window along one axis."""
    return max(extent + stride + padding - size, 0) // stride if stride else 0


def _of_one(operation: Operation, info: TensorInfo) -> TensorInfo:
    """Return the result's description of an operation on one feature map."""
    signed = info.data_type is DataType.S8
    match operation:
        case ReinterpretQuantization(output) | LeakyRelu(_, output) | Resize(_, _, _, output):
            return replace(info, shape=_shape(operation, info.shape), quantization=output)
        case Requantize(output, data_type):
            return replace(info, quantization=output, data_type=data_type or info.data_type)
        case Sigmoid():
            output = QuantizationInfo(-128 if signed else 0, (SIGMOID_SCALE,))
            return replace(info, quantization=output)
        case Tanh():
            return replace(info, quantization=QuantizationInfo(0 if signed else 128, (TANH_SCALE,)))
        case _:
            return replace(info, shape=_shape(operation, info.shape))


def _shape(operation: Operation, shape: Shape) -> Shape:
    """Return the extents of what an operation makes of one feature map."""
    n, h, w, c = shape
    match operation:
        case MeanXy():
            return n, 1, 1, c
        case Pooling((height, width), stride, padding):
            h = _windows(h, padding.top + padding.bottom, height, stride.y)
            return n, h, _windows(w, padding.left + padding.right, width, stride.x), c
        case Reshape(new):
            return new
        case DepthToSpace(block):
            return n, h * block, w * block, c // block**2 if block else 0
        case SpaceToDepth(block):
            return n, h // block if block else 0, w // block if block else 0, c * block**2
        case Transpose((first, second, third, fourth)):
            n, h, w, c = (_extent(shape, axis) for axis in (first, second, third, fourth))
            return n, h, w, c
        case Resize(_, height, width):
            return n, height, width, c
        case StandalonePadding(padding):
            return n, h + padding.top + padding.bottom, w + padding.left + padding.right, c
        case _:
            return shape


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
        users: dict[Operand, list[Node]] = {
            operand: [] for node in self for operand in node.outputs
        }
        for node in self:
            for operand in node.inputs:
                users[operand].append(node)
        return users


OFFSET = 128
"""Between a number and the one of the other sign that has its place."""


def as_unsigned(network: Network) -> Network:
    """Return the network whose feature maps hold 128 more, as unsigned numbers.

    Operations keep their ids; weights and biases stay as they are. All feature maps must be signed.
    """
    made = Network()
    for node in network:
        _add(made, node)
    return made


def _add(made: Network, node: Node) -> None:
    inputs = [_counterpart(made, operand) for operand in node.inputs]
    match node.operation:
        case Input(info):
            made.add_input(_info(info), node.origin)
        case Constant(info):
            assert node.data is not None
            made.add_constant(info, node.data, node.origin)
        case operation:
            made.add(_operation(operation), *inputs, origin=node.origin)


def _counterpart(made: Network, operand: Operand) -> Operand:
    return made[operand.operation_id].outputs[operand.output_index]


def _info(info: TensorInfo) -> TensorInfo:
    assert info.data_type is DataType.S8
    return replace(info, data_type=DataType.U8, quantization=_quantization(info.quantization))


def _quantization(quantization: QuantizationInfo) -> QuantizationInfo:
    return replace(quantization, zero_point=quantization.zero_point + OFFSET)


def _operation(operation: Operation) -> Operation:
    match operation:
        case (
            Convolution()
            | DepthwiseConvolution()
            | TransposeConvolution()
            | FullyConnected()
            | Concatenation()
            | Addition()
            | Multiplication()
            | ReinterpretQuantization()
            | LeakyRelu()
            | Resize()
        ):
            return replace(operation, output=_quantization(operation.output))
        case Requantize(output, data_type):
            assert data_type in (None, DataType.S8)
            unsigned = None if data_type is None else DataType.U8
            return Requantize(_quantization(output), unsigned)
        case Relu(lower, upper):
            return Relu(lower + OFFSET, upper + OFFSET)
        case _:
            return operation
