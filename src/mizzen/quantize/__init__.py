"""Quantization of PyTorch programs for Ethos-U, by torchao's PT2E flow.

The names here import torch and torchao when they are first used; E165 where these are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mizzen.quantize.requirement import require_torch

if TYPE_CHECKING:
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


@contextmanager
def without_import_messages() -> Generator[None]:
    """Keep from the user what torchao logs about itself while it is imported."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


if not TYPE_CHECKING:  # a type checker must still see a misspelt name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'mizzen.quantize' has no attribute {name!r}")
        require_torch()
        home = "quantizer" if name == "EthosUQuantizer" else "configuration"
        with without_import_messages():
            module = import_module(f"mizzen.quantize.{home}")
        globals()[name] = value = getattr(module, name)
        return value
