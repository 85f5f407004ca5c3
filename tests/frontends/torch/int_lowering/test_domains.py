"""Functions whose domain ends at 1: no number within it is rounded beyond it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor

from .exactness import lowered

FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "acos": (torch.acos, -1.0, 1.0),
    "asin": (torch.asin, -0.97, 1.0),
    "atanh": (torch.atanh, -1.0, 0.7),
    "erfinv": (torch.erfinv, -1.0, 0.9),
    "logit": (torch.logit, 0.0, 1.0),
    "acosh": (torch.acosh, 1.0, 5.3),
}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pytorch_has_a_number_everywhere(name: str, bits: int) -> None:
    function, least, greatest = FUNCTIONS[name]

    def applied(x: Tensor) -> Tensor:
        return function(x.clamp(least, greatest))

    found = lowered(applied, torch.linspace(least - 0.5, greatest + 0.5, 999), bits=bits)
    assert found.on_cpu == {}
    with torch.no_grad():
        wanted = found.exported.module(check_guards=False)(*found.inputs)
    assert torch.isfinite(wanted).all()
    assert bits == 16 or found.steps_off() <= 1
