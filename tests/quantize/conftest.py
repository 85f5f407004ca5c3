"""The PT2E flow, from a module to a converted program, as a fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

CALIBRATIONS = 4


@dataclass
class Flow:
    """A quantized network beside its float original."""

    float_module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    converted: Any
    quantizer: EthosUQuantizer

    def operators(self) -> list[str]:
        """Return the names of the operators left, without those that quantize."""
        names = [str(n.target) for n in self.converted.graph.nodes if n.op == "call_function"]
        return [name for name in names if not name.startswith("quantized_decomposed")]

    def quantizations(self) -> list[tuple[float, int, torch.dtype]]:
        """Return scale, zero point and type of every tensor that is quantized as it is computed."""
        return [
            (node.args[1], node.args[2], node.args[5])
            for node in self.converted.graph.nodes
            if str(node.target) == "quantized_decomposed.quantize_per_tensor.default"
        ]

    def noise(self, *inputs: torch.Tensor) -> float:
        """Return the ratio of signal to error in dB, of the first output."""
        expected, found = self.float_module(*inputs), self.converted(*inputs)
        if isinstance(expected, tuple):
            expected, found = expected[0], found[0]
        error = (expected - found).square().mean()
        return float(10 * torch.log10(expected.square().mean() / error))

    def float_islands(self) -> list[str]:
        """Return the operators that read or give numbers that are not quantized."""
        return [node.name for node in self.converted.graph.nodes if _is_island(node)]


# An activation after these is part of them: nothing is quantized in between.
FUSED = ("relu", "hardtanh", "clamp", "relu6")


def _is_island(node: Any) -> bool:
    name = str(node.target)
    if node.op != "call_function" or not name.startswith("aten.") or "copy_" in name:
        return False
    reads = (_is_quantized(operand, node) for operand in node.all_input_nodes)
    return not (all(reads) and all(_is_read_quantized(user) for user in node.users))


def _is_quantized(operand: Any, reader: Any) -> bool:
    if "dequantize" in str(operand.target) or "getitem" in str(operand.target):
        return True
    fused = any(name in str(reader.target) for name in FUSED) and len(operand.users) == 1
    return fused or operand.meta.get("val") is None or not operand.meta["val"].is_floating_point()


def _is_read_quantized(user: Any) -> bool:
    name = str(user.target)
    fused = any(word in name for word in FUSED)
    return fused or "quantize_per" in name or "getitem" in name


Quantize = Callable[..., Flow]


@pytest.fixture(autouse=True)
def seed() -> Iterator[None]:
    """The same weights and inputs in every run, and no gradients."""
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture
def quantize() -> Quantize:
    """Return a function that quantizes a module after calibrating it on random inputs."""

    def run(
        module: torch.nn.Module, *inputs: torch.Tensor, quantizer: EthosUQuantizer | None = None
    ) -> Flow:
        if quantizer is None:
            quantizer = EthosUQuantizer("ethos-u55-128")
            quantizer.set_global(get_symmetric_quantization_config())
        module = module.eval()
        program = torch.export.export(module, inputs).module()
        prepared = prepare_pt2e(program, quantizer)
        prepared(*inputs)
        for _ in range(CALIBRATIONS - 1):
            prepared(*(torch.randn_like(x) for x in inputs))
        return Flow(module, inputs, convert_pt2e(prepared), quantizer)

    return run
