"""Shifts by a tensor of amounts: proved with amounts that mean something."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn

from mizzen.torch import compile

Shift = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class _Shift(nn.Module):
    def __init__(self, shift: Shift) -> None:
        super().__init__()
        self.shift = shift

    def forward(self, x: torch.Tensor, amounts: torch.Tensor) -> torch.Tensor:
        return self.shift(x, amounts)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
@pytest.mark.parametrize("shift", [torch.bitwise_left_shift, torch.bitwise_right_shift])
def test_shifts_by_a_tensor_are_proved(shift: Shift, dtype: torch.dtype) -> None:
    x = torch.randint(-8, 8, (3, 5)).to(dtype)
    amounts = torch.randint(0, 4, (3, 5)).to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one input to calibrate with
        artifact = compile(_Shift(shift).eval(), (x, amounts), "ethos-u55-128")
    report = artifact.report
    assert report is not None
    assert not report.on_cpu
    assert report.proof.inputs
    assert not report.proof.unproved
    found = torch.from_numpy(artifact.run(x.numpy(), amounts.numpy()))
    assert torch.equal(found, shift(x, amounts))
