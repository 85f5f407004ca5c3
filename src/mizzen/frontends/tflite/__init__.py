"""TFLite networks and artifacts, read into typed data with every index checked."""

from mizzen.frontends.tflite.macs import macs
from mizzen.frontends.tflite.model import Model, Operator, Quantization, Subgraph, Tensor
from mizzen.frontends.tflite.npu import (
    CONTAINER_CODE,
    ContainerOperator,
    NpuOperator,
    NpuTensor,
    container_operator,
    is_npu,
    npu_operator,
)
from mizzen.frontends.tflite.quantized import require_quantized
from mizzen.frontends.tflite.reading import read

__all__ = [
    "CONTAINER_CODE",
    "ContainerOperator",
    "Model",
    "NpuOperator",
    "NpuTensor",
    "Operator",
    "Quantization",
    "Subgraph",
    "Tensor",
    "container_operator",
    "is_npu",
    "macs",
    "npu_operator",
    "read",
    "require_quantized",
]
