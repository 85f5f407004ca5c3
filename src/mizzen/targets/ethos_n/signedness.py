"""Networks of signed feature maps as the same networks of unsigned ones."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_n.network import (
    Addition,
    Concatenation,
    Constant,
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    Input,
    LeakyRelu,
    Multiplication,
    Network,
    Node,
    Operand,
    Operation,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Resize,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, TensorInfo

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
