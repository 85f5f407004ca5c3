"""Cells of recurrent networks, taken apart: what PyTorch computes, in steps that have ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

CELLS: dict[str, Callable[[], nn.Module]] = {
    "GRU": lambda: nn.GRUCell(6, 5),
    "GRU without biases": lambda: nn.GRUCell(6, 5, bias=False),
    "LSTM": lambda: nn.LSTMCell(6, 5),
    "RNN": lambda: nn.RNNCell(6, 5),
    "RNN of ReLU": lambda: nn.RNNCell(6, 5, nonlinearity="relu"),
}


class _Loop(nn.Module):
    """Two steps of one cell, whose weights both share, from a state that is given."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[Any, ...]:
        if not isinstance(self.cell, nn.LSTMCell):
            first = self.cell(x[:, 0], h)
            return first, self.cell(x[:, 1], first)
        first, cell = self.cell(x[:, 0], (h, c))
        return first, *self.cell(x[:, 1], (first, cell))


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_taken_apart(name: str) -> None:
    """Observers change nothing: the difference is that of float32 sums in another order."""
    torch.manual_seed(0)
    model = _Loop(CELLS[name]()).eval()
    call = (torch.randn(3, 2, 6), torch.randn(3, 5), torch.randn(3, 5))
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    exported = torch.export.export(model, call).module(check_guards=False)
    prepared = prepare_pt2e(exported, quantizer)
    assert not quantizer.report()
    with torch.no_grad():
        for found, expected in zip(prepared(*call), model(*call), strict=True):
            assert torch.allclose(found, expected, atol=1e-6)
