"""What a model computes under a setting of PyTorch's is part of its program."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.diagnostics import MizzenError
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import compile


class _Settings(nn.Module):
    """Linear layers under settings, one within the other, that give one result and two."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            y = self.linear(x.float())
            with torch.set_grad_enabled(not torch.is_grad_enabled()):
                z = torch.relu(self.other(y))
        return y + z


X = torch.linspace(-1, 1, 12).reshape(3, 4)


def test_layers_under_settings_are_on_the_npu() -> None:
    torch.manual_seed(0)
    model = _Settings().eval()
    artifact = compile(model, X, "ethos-u55-128", calibration=[X])
    assert artifact.report is not None
    assert {row.device.value for row in artifact.report.placements} == {"NPU"}
    wanted = model(X).detach().numpy()
    # Five roundings, each of half a step of at most twice the results' range.
    assert np.abs(artifact.run(X.numpy()) - wanted).max() <= 5 * np.ptp(wanted) / 255


def test_the_published_steps_quantise_them() -> None:
    program = torch.export.export(_Settings().eval(), (X,)).module(check_guards=False)
    config = get_symmetric_quantization_config()
    prepared = prepare_pt2e(program, EthosUQuantizer("ethos-u55-128").set_global(config))
    prepared(X)
    converted = convert_pt2e(prepared)
    names = [str(node.target) for node in converted.graph.nodes]
    assert names.count("aten.linear.default") == 2
    assert not any(name.startswith("wrap_with") for name in names)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_other_types_under_a_setting_are_refused(kind: torch.dtype) -> None:
    class Narrow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=kind):
                return x @ x.transpose(0, 1)

    with pytest.raises(MizzenError) as caught:
        compile(Narrow().eval(), X, "ethos-u55-128", calibration=[X])
    assert caught.value.diagnostic.code == "E874"
