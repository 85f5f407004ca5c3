"""Regions of PyTorch programs by our own rules, where Vela has no code, or none that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from mizzen.quantize import get_symmetric_a16w8_quantization_config
from mizzen.torch import compile_converted

Build = Callable[..., Any]

U55, U65 = "ethos-u55-128", "ethos-u65-512"


class Upscaled(nn.Module):
    """What decoders of segmentation networks are: bilinear upscaling between convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.before(x))
        return self.behind(nn.functional.interpolate(y, scale_factor=2, mode="bilinear"))


@pytest.mark.parametrize("accelerator", [U55, U65])
def test_what_vela_does_not_take_is_on_the_npu(accelerator: str, converted: Build) -> None:
    exported = converted(Upscaled(), [(torch.randn(1, 4, 6, 6),)])
    report = compile_converted(exported, accelerator).report
    assert report is not None
    assert not report.on_cpu
    assert report.compiler == "Mizzen"
    assert report.proof.equal == 1


def test_transposed_convolutions_of_16_bits_are_on_the_npu(converted: Build) -> None:
    module = nn.Sequential(nn.Conv2d(4, 8, 1), nn.ConvTranspose2d(8, 4, 2, 2))
    config = get_symmetric_a16w8_quantization_config()
    exported = converted(module, [(torch.randn(1, 4, 5, 5),)], config=config)
    report = compile_converted(exported, U55).report
    assert report is not None
    assert not report.on_cpu
    assert report.proof.equal == 1
