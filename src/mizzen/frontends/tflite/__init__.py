"""TFLite files as typed networks."""

from mizzen.frontends.tflite.macs import macs
from mizzen.frontends.tflite.model import Model, Operator, Quantization, Tensor, read

__all__ = ["Model", "Operator", "Quantization", "Tensor", "macs", "read"]
