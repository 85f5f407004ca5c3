"""Bits of whole numbers, on the NPU, against PyTorch: exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor

from mizzen.diagnostics import MizzenError
from mizzen.torch import compile

U55, U85 = "ethos-u55-128", "ethos-u85-128"
TYPES = (torch.int8, torch.int16, torch.int32)

COMBINED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": lambda x, y: x ^ y,
    "and with a number": lambda x, y: x & 29,
    "not": lambda x, y: torch.bitwise_not(x),
}

CALCULATED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "sum with a number": lambda x, y: x * 3 + 7,
}

SHIFTED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "left": lambda x, by: x << by,
    "left by a number": lambda x, by: x << 3,
    "right": lambda x, by: x >> by,
    "right by a number": lambda x, by: x >> 2,
    "right by nothing": lambda x, by: x >> 0,
}


def _drawn(dtype: torch.dtype, *shape: int) -> Tensor:
    limits = torch.iinfo(dtype)
    values = torch.randint(limits.min, limits.max, shape, dtype=dtype)
    values.view(-1)[:2] = torch.tensor([limits.min, limits.max], dtype=dtype)
    return values


def _whole(function: Callable[..., Tensor], x: Tensor, y: Tensor, accelerator: str) -> None:
    artifact = compile(function, (x, y), accelerator, calibration=[(x, y)])
    assert artifact.report is not None
    assert [row.kind for row in artifact.report.on_cpu] == []
    assert np.array_equal(artifact.run(x.numpy(), y.numpy()), function(x, y).numpy())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", COMBINED)
def test_bits_are_combined_on_u85(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    _whole(COMBINED[name], _drawn(dtype, 2, 3, 5), _drawn(dtype, 3, 5), U85)


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CALCULATED)
def test_whole_numbers_are_calculated(name: str, dtype: torch.dtype, accelerator: str) -> None:
    """8 and 16 bits wrap around; of 32 bits the numbers are small enough not to."""
    torch.manual_seed(0)
    x, y = _drawn(dtype, 2, 3, 5), _drawn(dtype, 3, 5)
    if dtype is torch.int32:
        x, y = x >> 17, y >> 17
    _whole(CALCULATED[name], x, y, accelerator)


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", SHIFTED)
def test_bits_are_shifted(name: str, dtype: torch.dtype, accelerator: str) -> None:
    torch.manual_seed(0)
    by = torch.randint(0, 8, (3, 7), dtype=dtype)
    x = _drawn(dtype, 3, 7)
    _whole(SHIFTED[name], x >> 7 if _overflows(name, dtype, accelerator) else x, by, accelerator)


def _overflows(name: str, dtype: torch.dtype, accelerator: str) -> bool:
    """Whether bits are lost beyond the widest numbers that U55 has, which is a fault there."""
    return name.startswith("left") and dtype is torch.int32 and accelerator == U55


def _quadrupled(x: Tensor) -> Tensor:
    return x << 2


def test_bits_that_the_widest_numbers_lose_are_a_fault_on_u55() -> None:
    x = torch.tensor([1 << 30, 1], dtype=torch.int32)
    artifact = compile(_quadrupled, (x >> 2,), U55, calibration=[(x >> 2,)])
    with pytest.raises(MizzenError, match="E641"):
        artifact.run(x.numpy())
