"""Quotients of two tensors that are cut, and remainders, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor

from mizzen.diagnostics import MizzenError
from mizzen.torch import compile

from .exactness import lowered

aten: Any = torch.ops.aten
U55, U85 = "ethos-u55-128", "ethos-u85-128"

CUT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "floor_divide": torch.floor_divide,
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
}


def _operands(spread: float) -> tuple[Tensor, Tensor]:
    """Return numbers among which many quotients are whole, or nearly so, and no divisor is 0."""
    generator = torch.Generator().manual_seed(5)
    divisors = torch.randint(1, 9, (1, 40, 40), generator=generator) * 0.25
    divisors[:, ::2] *= -1
    wholes = torch.randint(-9, 10, (1, 40, 40), generator=generator)
    return spread * (wholes * divisors + torch.randn(1, 40, 40, generator=generator) / 8), divisors


@pytest.mark.parametrize("spread", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("name", CUT)
def test_quotients_are_cut_as_pytorch_cuts_them(name: str, spread: float) -> None:
    found = lowered(CUT[name], *_operands(spread))
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


@pytest.mark.parametrize("name", CUT)
def test_quotients_of_16_bits_are_cut_as_pytorch_cuts_them(name: str) -> None:
    found = lowered(CUT[name], *_operands(1.0), bits=16)
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


def test_a_number_is_divided_and_unrounded_quotients_are_any_other() -> None:
    def divided(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return aten.floor_divide(torch.tensor(3.0), y), torch.div(x, y, rounding_mode=None)

    found = lowered(divided, *_operands(1.0))
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


def test_quotients_by_zero_have_their_sign_and_are_the_greatest() -> None:
    divisors = torch.tensor([0.0, 0.0, 2.0, -4.0])
    dividends = torch.tensor([3.0, -3.0, 5.0, 5.0])
    found = lowered(torch.floor_divide, dividends, divisors + 0.01)
    assert found.on_cpu == {}
    found = replace(found, inputs=(dividends, divisors))
    assert found.steps_off() <= 1


@pytest.mark.parametrize(("spread", "bits"), [(1e7, 8), (300.0, 16)])
def test_scales_that_are_far_apart_are_refused(spread: float, bits: int) -> None:
    found = lowered(torch.remainder, *_operands(spread), bits=bits)
    assert "too far apart" in found.on_cpu["aten.remainder"]


@pytest.mark.parametrize("name", CUT)
def test_quotients_are_cut_on_u85(name: str) -> None:
    _whole(CUT[name], *(part[:, :8] for part in _operands(1.0)))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32], ids=str)
@pytest.mark.parametrize("name", CUT)
def test_whole_numbers_are_divided_on_u85(name: str, dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(5)
    x = torch.randint(limits.min, limits.max, (3, 50), dtype=dtype, generator=generator)
    y = torch.randint(-9, 10, (3, 50), dtype=dtype, generator=generator)
    y[y == 0] = limits.min
    _whole(CUT[name], x, y)


def _whole(function: Callable[..., Tensor], x: Tensor, y: Tensor) -> None:
    artifact = compile(function, (x, y), U85, calibration=[(x, y)])
    assert artifact.report is not None
    assert [row.kind for row in artifact.report.on_cpu] == []
    if not x.is_floating_point():
        assert np.array_equal(artifact.run(x.numpy(), y.numpy()), function(x, y).numpy())


def test_whole_numbers_are_not_divided_by_zero() -> None:
    x, y = torch.tensor([4, 5], dtype=torch.int32), torch.tensor([2, 3], dtype=torch.int32)
    artifact = compile(torch.floor_divide, (x, y), U85, calibration=[(x, y)])
    with pytest.raises(MizzenError, match=r"E642.*divisor"):
        artifact.run(x.numpy(), np.array([2, 0], np.int32))


def test_u55_has_no_quotients_of_tensors() -> None:
    x, y = _operands(1.0)
    artifact = compile(torch.floor_divide, (x, y), U55, calibration=[(x, y)])
    assert artifact.report is not None
    (row,) = artifact.report.on_cpu
    assert row.kind == "aten.floor_divide"
    assert "INTDIV" in row.reasons[0].message
