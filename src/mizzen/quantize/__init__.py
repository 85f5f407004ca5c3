"""Quantization of PyTorch programs for Ethos-U, by torchao's PT2E flow.

Importing this imports torch and torchao.
"""

from mizzen.quantize.configuration import (
    QuantizationConfig,
    get_symmetric_a8w4_quantization_config,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
    get_uint8_io_quantization_config,
)
from mizzen.quantize.quantizer import EthosUQuantizer

__all__ = [
    "EthosUQuantizer",
    "QuantizationConfig",
    "get_symmetric_a8w4_quantization_config",
    "get_symmetric_a16w8_quantization_config",
    "get_symmetric_quantization_config",
    "get_uint8_io_quantization_config",
]
