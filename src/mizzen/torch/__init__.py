"""The PyTorch user's interface: quantise a model, compile it for an NPU, run it.

`compile` does it in one call; the stepwise path is torch.export, `EthosUQuantizer` with torchao's
`prepare_pt2e` and `convert_pt2e`, torch.export again, and `compile_converted` or `compile_for`.
Names are those of ExecuTorch's Arm backend where it has one, so that scripts move over. Importing
`mizzen.torch.backend`, which `torch.compile(model, backend="mizzen")` does, is the third way.

It is an interface and no more: how programs become artifacts is in `mizzen.compiler.torch`, how
they are quantised in `mizzen.quantize`. Names are imported when they are first used, since PyTorch
takes a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mizzen.quantize import (
        EthosUQuantizer,
        get_symmetric_a8w4_quantization_config,
        get_symmetric_a16w8_quantization_config,
        get_symmetric_quantization_config,
        get_uint8_io_quantization_config,
    )
    from mizzen.quantize.cache import KeyValueCache
    from mizzen.torch.compilation import compile, compile_converted, compile_for
    from mizzen.torch.lowering import to_tosa
    from mizzen.torch.partitioner import EthosUPartitioner
    from mizzen.torch.spec import EthosUCompileSpec, VelaExternalBlockPlacements

__all__ = [
    "EthosUCompileSpec",
    "EthosUPartitioner",
    "EthosUQuantizer",
    "KeyValueCache",
    "VelaExternalBlockPlacements",
    "compile",
    "compile_converted",
    "compile_for",
    "get_symmetric_a8w4_quantization_config",
    "get_symmetric_a16w8_quantization_config",
    "get_symmetric_quantization_config",
    "get_uint8_io_quantization_config",
    "to_tosa",
]

_HOMES = {
    "EthosUCompileSpec": "mizzen.torch.spec",
    "EthosUPartitioner": "mizzen.torch.partitioner",
    "EthosUQuantizer": "mizzen.quantize",
    "KeyValueCache": "mizzen.quantize.cache",
    "VelaExternalBlockPlacements": "mizzen.torch.spec",
    "compile": "mizzen.torch.compilation",
    "compile_converted": "mizzen.torch.compilation",
    "compile_for": "mizzen.torch.compilation",
    "get_symmetric_a8w4_quantization_config": "mizzen.quantize",
    "get_symmetric_a16w8_quantization_config": "mizzen.quantize",
    "get_symmetric_quantization_config": "mizzen.quantize",
    "get_uint8_io_quantization_config": "mizzen.quantize",
    "to_tosa": "mizzen.torch.lowering",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'mizzen.torch' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
