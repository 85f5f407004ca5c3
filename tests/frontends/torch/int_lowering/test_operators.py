"""Every operator by itself: the integers that it is lowered to, against PyTorch's own roundings."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'mizzen[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install 'mizzen[torch]')")

import torch

from mizzen.frontends.torch.operators import OPERATORS, Missing

from . import cases
from .exactness import image, lowered

EVERY: dict[str, cases.Computation] = {
    name: computation
    for group in (cases.COMPARISON, cases.CHOICE, cases.ELEMENTWISE, cases.MATMUL, cases.MOVEMENT,
                  cases.POOLING, cases.REDUCTION, cases.RESIZE, cases.ACTIVATION)
    for name, computation in group.items()
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_integers_are_pytorchs_within_a_step(name: str) -> None:
    """What only moves, and rounds nothing, is exact; means round ties up, and PyTorch's to even."""
    found = lowered(EVERY[name], image())
    assert found.on_cpu == {}
    rounds = {"AVG_POOL2D", "RESCALE", "TABLE"} & set(found.kinds)
    assert found.steps_off() <= (1 if rounds else 0)


REFUSED: dict[str, tuple[cases.Computation, str, str]] = {
    "argmax": (lambda x: torch.relu(x).argmax(1), "aten.argmax", "its result has 64 bits"),
    "max with its place": (lambda x: x.max(1), "aten.max", "its result has 64 bits"),
    "sort": (lambda x: torch.relu(x).sort(1).values, "aten.sort", "TOSA sorts nothing"),
    "prod": (lambda x: x.prod(1), "aten.prod", "no NPU multiplies along a dimension"),
    "cumprod": (
        lambda x: torch.relu(x).cumprod(1),
        "aten.cumprod",
        "there is no TOSA form of aten.cumprod",
    ),
    "diagonal": (lambda x: x.diagonal(dim1=2, dim2=3), "aten.diagonal", "have no strides"),
    "power": (lambda x: x.abs() ** x, "aten.pow", "a power of two tensors"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    computation, kind, reason = REFUSED[name]
    assert reason in lowered(computation, image()).on_cpu[kind]


def test_rows_that_refuse_are_refused_here() -> None:
    refused = [name for name, row in OPERATORS.items() if isinstance(row.integers, Missing)]
    assert {"aten.argmax.default", "aten.sort.default", "aten.prod.dim_int"} <= set(refused)
