"""Whole numbers that are not quantised: clamped, compared, the greatest found, on the NPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mizzen.torch import compile

U55, U85 = "ethos-u55-128", "ethos-u85-256"
TYPES = [torch.int8, torch.int16, torch.int32]
Function = Callable[[Tensor, Tensor], Tensor]

ON_ALL: dict[str, Function] = {
    "clamp": lambda x, y: torch.clamp(x, -3, 50),
    "clamp below": lambda x, y: torch.clamp(x, min=-2),
    "clamp to tensors": lambda x, y: torch.clamp(x, min=y),
    "relu": lambda x, y: torch.relu(x),
    "minimum": torch.minimum,
}
NARROW: dict[str, Function] = {
    "argmax": lambda x, y: torch.argmax(x, 1),
    "argmax of all": lambda x, y: torch.argmax(x),
}
COMPARED: dict[str, Function] = {
    "greater": torch.gt,
    "equal to a number": lambda x, y: x == 3,
    "chosen": lambda x, y: torch.where(x > y, x, torch.zeros_like(y)),
}


def numbers(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return tensors with the ends of the type, and equal numbers."""
    torch.manual_seed(0)
    ends = torch.iinfo(dtype)
    x = torch.randint(-60, 60, (4, 12)).to(dtype)
    x[0, :2] = torch.tensor([ends.min, ends.max], dtype=dtype)
    y = torch.randint(-60, 60, (4, 12)).to(dtype)
    y[1] = x[1]
    return x, y


def cases() -> list[Any]:
    return [
        *((name, U55, dtype) for name in ON_ALL for dtype in TYPES),
        *((name, U85, dtype) for name in (*ON_ALL, *COMPARED) for dtype in TYPES),
        *((name, npu, dtype) for name in NARROW for npu in (U55, U85) for dtype in TYPES[:2]),
    ]


@pytest.mark.parametrize(("name", "accelerator", "dtype"), cases())
def test_whole_numbers_are_exact(name: str, accelerator: str, dtype: torch.dtype) -> None:
    function = {**ON_ALL, **NARROW, **COMPARED}[name]
    x, y = numbers(dtype)

    def model(x: Tensor, y: Tensor) -> Tensor:
        return function(x, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one input to calibrate with
        artifact = compile(model, (x, y), accelerator)
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    expected = model(x, y).numpy()
    found = np.asarray(artifact.run(x=x, y=y))
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_the_greatest_of_32_bits_is_pytorchs() -> None:
    x, _ = numbers(torch.int32)

    def greatest(x: Tensor) -> Tensor:
        return torch.argmax(x, 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        artifact = compile(greatest, (x,), U85)
    assert artifact.report is not None
    (left,) = artifact.report.on_cpu
    assert left.reasons[0].message == "it is of 32 bits, and TOSA finds among 8 or 16"
    assert np.array_equal(artifact.run(x), torch.argmax(x, 1).numpy())
