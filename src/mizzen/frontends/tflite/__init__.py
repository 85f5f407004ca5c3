"""TFLite networks and artifacts, read into typed data with every index checked."""

from mizzen.frontends.tflite.macs import macs
from mizzen.frontends.tflite.model import Model, Operator, Quantization, Subgraph, Tensor
from mizzen.frontends.tflite.quantized import require_quantized
from mizzen.frontends.tflite.reading import read

__all__ = [
    "Model",
    "Operator",
    "Quantization",
    "Subgraph",
    "Tensor",
    "macs",
    "read",
    "require_quantized",
]
