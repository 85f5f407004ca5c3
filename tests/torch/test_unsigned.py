"""Bytes without a sign at a network's boundary: `set_io(get_uint8_io_quantization_config())`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.artifact.host_steps import QuantizeStep
from mizzen.torch import (
    EthosUQuantizer,
    compile_converted,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
    get_uint8_io_quantization_config,
)

from .conftest import Built


class _Sorts(nn.Module):
    """A convolution, and what only PyTorch computes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(self.conv(x)).values


def _built(module: nn.Module, accelerator: str, config: Any) -> Built:
    torch.manual_seed(0)
    calls = [(torch.rand(1, 3, 8, 8),) for _ in range(3)]
    quantizer = EthosUQuantizer(accelerator).set_global(config)
    quantizer.set_io(get_uint8_io_quantization_config())
    exported = torch.export.export(module.eval(), calls[0])
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for call in calls:
            prepared(*call)
    program = torch.export.export(convert_pt2e(prepared), calls[0])
    return Built(compile_converted(program, accelerator, prove="off"), program, calls)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize(
    "config", [get_symmetric_quantization_config, get_symmetric_a16w8_quantization_config]
)
def test_bytes_without_a_sign_are_what_pytorch_has(
    config: Callable[[], Any], accelerator: str
) -> None:
    """The whole network is on the NPU, which has the bytes less 128."""
    found = _built(nn.Conv2d(3, 4, 3), accelerator, config())
    (step,) = (row for row in found.artifact.steps if isinstance(row, QuantizeStep))
    assert (step.low, step.high, step.zero_point) == (-128, 127, -128)
    assert found.on_cpu == {}
    assert found.npu_regions == 1
    assert found.steps_off() <= 1


def test_pytorchs_part_gives_and_takes_them_too() -> None:
    found = _built(_Sorts(), "ethos-u55-128", get_symmetric_quantization_config())
    assert list(found.on_cpu) == ["aten.sort"]
    assert found.steps_off() == 0
