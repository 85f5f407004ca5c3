"""Numbers that a quantiser gives integers of 32 bits: PyTorch computes with them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor

from mizzen.quantize import without_import_messages
from mizzen.torch import compile_converted

with without_import_messages():
    import_module("torchao.quantization.pt2e.quantize_pt2e")  # it registers the operators

RANGES = {
    torch.int8: (-128, 127),
    torch.int16: (-32768, 32767),
    torch.int32: (-(1 << 31), (1 << 31) - 1),
}

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "sum": lambda x: x + x,
    "difference": lambda x: x - x.flip(1),
    "product": lambda x: x * x,
    "greatest": lambda x: torch.maximum(x, x.flip(1)),
    "mean": lambda x: x.mean(1, keepdim=True),
    "softmax": lambda x: x.softmax(1),
    "relu": torch.relu,
    "clamp": lambda x: x.clamp(-0.25, 0.5),
    "flat": lambda x: x.flatten(),
}


def quantised(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return numbers between -2 and 2 as integers stand for them."""
    low, high = RANGES[dtype]
    grid = (2.0 / high, 0, low, high, dtype)
    integers = torch.ops.quantized_decomposed.quantize_per_tensor.default(x, *grid)
    return torch.ops.quantized_decomposed.dequantize_per_tensor.default(integers, *grid)


@pytest.mark.parametrize("given", [torch.int16, torch.int32], ids=str)
@pytest.mark.parametrize("wanted", [torch.int8, torch.int32], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_of_32_bits_are_pytorchs(
    name: str, given: torch.dtype, wanted: torch.dtype
) -> None:
    class Network(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return quantised(FUNCTIONS[name](quantised(x, given)), wanted)

    inputs = (torch.rand(3, 8, generator=torch.Generator().manual_seed(1)) - 0.5,)
    exported = torch.export.export(Network().eval(), inputs)
    artifact = compile_converted(exported, "ethos-u85-256")
    found = artifact.run(inputs[0].numpy())
    assert isinstance(found, np.ndarray)
    step = 2.0 / 127 if wanted is torch.int8 else 2.0**-12
    expected = exported.module(check_guards=False)(*inputs).numpy()
    assert np.abs(found - expected).max() <= step * 1.01
