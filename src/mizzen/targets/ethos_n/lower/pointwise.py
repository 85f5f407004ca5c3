"""Lowering of what the programmable layer engine computes, and of clamps and requantisations.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.commands_values import PleOperation
from mizzen.targets.ethos_n.lower.work import (
    Clamp,
    FusedPle,
    LonePle,
    Ratio,
    Requantise,
    ShapeRatio,
)
from mizzen.targets.ethos_n.operations import (
    Addition,
    LeakyRelu,
    MeanXy,
    Pooling,
    PoolingType,
    Relu,
    Requantize,
    Sigmoid,
    Tanh,
)
from mizzen.targets.ethos_n.tensors import TensorInfo

PleWork = Clamp | FusedPle | LonePle | Requantise
Pointwise = Addition | LeakyRelu | MeanXy | Pooling | Relu | Requantize | Sigmoid | Tanh

MEANS = {7: PleOperation.MEAN_XY_7X7, 8: PleOperation.MEAN_XY_8X8}
"""Kernels by the extent of the square planes that they take the mean of."""
MAXIMA = {1: PleOperation.DOWNSAMPLE_2X2, 2: PleOperation.MAXPOOL_2X2_2_2}
"""Kernels of stride 2 by the size of the window."""


def pointwise_work(operation: Pointwise, inputs: tuple[TensorInfo, ...]) -> PleWork:
    """Return the work of an operation that a single node does."""
    match operation:
        case Relu(lower, upper):
            return Clamp(lower, upper)
        case Requantize():
            return Requantise()
        case LeakyRelu(alpha):
            return FusedPle(PleOperation.LEAKY_RELU, alpha=alpha)
        case Sigmoid() | Tanh():
            # A tanh is a sigmoid of twice the input, with another quantisation of the output.
            return FusedPle(PleOperation.SIGMOID)
        case MeanXy():
            return FusedPle(MEANS[inputs[0].height])
        case Pooling():
            return _pooling(operation, inputs[0])
        case Addition(output):
            same = all(info.quantization == output for info in inputs)
            return LonePle(PleOperation.ADDITION if same else PleOperation.ADDITION_RESCALE)


def _pooling(operation: Pooling, info: TensorInfo) -> FusedPle | LonePle:
    stride = operation.stride
    ratio = ShapeRatio(Ratio(1, stride.y), Ratio(1, stride.x))
    if operation.type is PoolingType.AVG:
        if operation.size == (info.height, info.width) and info.height in MEANS:
            return FusedPle(MEANS[info.height], ratio)
        return LonePle(PleOperation.AVGPOOL_3X3_1_1_UDMA)
    size = operation.size[0]
    if size in MAXIMA:
        return FusedPle(MAXIMA[size], ratio)
    odd = info.height % 2 and info.width % 2
    kernel = PleOperation.MAXPOOL_3X3_2_2_ODD if odd else PleOperation.MAXPOOL_3X3_2_2_EVEN
    return FusedPle(kernel, ratio)
