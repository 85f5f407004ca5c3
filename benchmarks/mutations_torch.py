"""Small PyTorch programs, exported and compiled, for mutations to start from."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import mizzen.torch
from mizzen.torch import EthosUCompileSpec, EthosUQuantizer, get_symmetric_quantization_config


class Listen(nn.Module):
    """A convolution, a dense layer, and a choice that no NPU makes."""

    def __init__(self, *, chooses: bool) -> None:
        """Make it; `chooses` adds what stays in PyTorch."""
        super().__init__()
        self.features = nn.Conv2d(2, 4, 3)
        self.scores = nn.Linear(16, 4)
        self.chooses = chooses

    def forward(self, x: Tensor) -> Tensor:
        """Return scores, or the greatest of them in order."""
        scores = self.scores(torch.relu(self.features(x)).flatten(1))
        return torch.topk(scores, 2)[0] if self.chooses else scores


def write_programs(folder: Path) -> None:
    """Write exported programs, what is compiled of them, and their TOSA."""
    torch.manual_seed(0)
    example = (torch.randn(1, 2, 4, 4),)
    for name, chooses in (("plain", False), ("choosing", True)):
        module = Listen(chooses=chooses).eval()
        exported = torch.export.export(module, example)
        torch.export.save(exported, folder / f"{name}-float.pt2")
        quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u55-128"))
        quantizer.set_global(get_symmetric_quantization_config())
        prepared = prepare_pt2e(exported.module(), quantizer)
        prepared(*example)
        converted = torch.export.export(convert_pt2e(prepared), example)
        torch.export.save(converted, folder / f"{name}-int8.pt2")
        artifact = mizzen.torch.compile_converted(converted, "ethos-u55-128")
        artifact.save(folder / f"{name}-u55{Path(artifact.name).suffix}")
        artifact.save(folder / f"{name}-u55.pte")
