"""Quantisation of PyTorch programs for NPUs, by torchao's PT2E flow.

torchao calibrates and converts; what it needs to be told is here: which values become integers,
which of them share a scale, and what must be taken apart first because it has ranges inside. All of
that is read from the registry of operators, so that nothing is quantised that the lowering does
not know. A target is only asked for the widths of integers that it wants.

The names here import torch and torchao when they are first used; E165 where these are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mizzen.diagnostics import fail

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


def require_torch() -> None:
    """Raise E165 unless PyTorch and torchao are installed."""
    missing = [name for name in ("torch", "torchao") if find_spec(name) is None]
    if missing:
        raise fail(
            "E165",
            f"{' and '.join(missing)} must be installed for PyTorch networks",
            help="pip install '.[torch]' in the folder of Mizzen's sources",
        )


def register_operators() -> None:
    """Make PyTorch know the operators of quantised programs, which files name."""
    import_module("torch.ao.quantization.fx._decomposed")
    import_module("mizzen.quantize.recurrence")
    import_module("mizzen.quantize.state")


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
