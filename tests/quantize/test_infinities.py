"""Infinities that operators give in calibration: ranges are of the finite numbers, and saturate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from mizzen import MizzenWarning
from mizzen.diagnostics import MizzenError
from mizzen.torch import compile

U85 = "ethos-u85-128"

GIVES_INFINITY: dict[str, Callable[[Tensor], Tensor]] = {
    "atanh": torch.atanh,
    "logit": torch.logit,
    "exp": lambda x: torch.exp(x * 100),
    "masked_fill": lambda x: x.masked_fill(torch.tensor([[True] + [False] * 8]), float("inf")),
    "of more": lambda x: torch.sigmoid(torch.logit(x) - 1.0),
}


@pytest.mark.parametrize("name", GIVES_INFINITY)
def test_infinities_of_an_operator_saturate(name: str) -> None:
    x = torch.linspace(0.0, 1.0, 9)[None]
    with pytest.warns(MizzenWarning, match="W871") as caught:
        artifact = compile(GIVES_INFINITY[name], (x,), U85, calibration=[(x,)])
    (found,) = [str(row.message) for row in caught if "W871" in str(row.message)]
    assert "came in calibration, which saturate: the range is that of the other numbers" in found
    assert "  at   " in found
    assert found.endswith("calibrate with inputs like those in use, or clamp before it")
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    wanted, result = GIVES_INFINITY[name](x).numpy(), np.asarray(artifact.run(x.numpy()))
    finite = np.isfinite(wanted)
    ends = np.where(wanted > 0, result.max(), result.min())
    assert np.array_equal(result[~finite], ends[~finite])
    least, greatest = wanted[finite].min(), wanted[finite].max()
    assert result.max() <= greatest + (greatest - least) / 64


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_nothing_but_infinities_saturates(value: float) -> None:
    x = torch.tensor([[value, value]])
    with pytest.warns(MizzenWarning, match="W871") as caught:
        artifact = compile(torch.atanh, (x,), U85, calibration=[(x,)])
    (found,) = [str(each.message) for each in caught if "W871" in str(each.message)]
    assert "saturate: no other number came, and 32768 stands for infinity" in found
    assert np.asarray(artifact.run(x.numpy())).tolist() == [[value * 32768] * 2]


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(MizzenError, match="E871"):
        compile(torch.atanh, (torch.tensor([[0.5, 2.0]]),), U85)
