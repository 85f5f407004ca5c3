"""Every operator by itself: the integers that it is lowered to, against PyTorch's own roundings."""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch

from mizzen.frontends.torch.operators import OPERATORS, Missing

from . import cases
from .exactness import image, leaves, lowered

EVERY: dict[str, cases.Computation] = {
    name: computation
    for group in (cases.COMPARISON, cases.CHOICE, cases.ELEMENTWISE, cases.MATMUL, cases.MOVEMENT,
                  cases.POOLING, cases.REDUCTION, cases.RESIZE, cases.ACTIVATION)
    for name, computation in group.items()
}  # fmt: skip


TOGETHER = 12
"""How many computations of one input are one program: exporting is what takes time."""
NAMES = list(EVERY)
GROUPS = [tuple(NAMES[at : at + TOGETHER]) for at in range(0, len(NAMES), TOGETHER)]


@cache
def judged(names: tuple[str, ...]) -> dict[str, tuple[set[str], float]]:
    """Return of each computation the kinds that it becomes, and its steps off PyTorch's."""
    functions = [EVERY[name] for name in names]
    counts = [len(leaves(function(image()))) for function in functions]

    def compute(x: torch.Tensor) -> list[Any]:
        return [function(x) for function in functions]

    found = lowered(compute, image())
    off = found.steps_off_each()
    ends = [*accumulate(counts)]
    return {
        name: (
            set[str]().union(*map(found.kinds_before, range(end - count, end))),
            max(off[end - count : end]),
        )
        for name, count, end in zip(names, counts, ends, strict=True)
    }


@pytest.mark.parametrize(
    ("names", "name"),
    [pytest.param(group, name, id=name) for group in GROUPS for name in group],
)
def test_integers_are_pytorchs_within_a_step(names: tuple[str, ...], name: str) -> None:
    """What only moves, and rounds nothing, is exact; means round ties up, and PyTorch's to even."""
    kinds, off = judged(names)[name]
    assert not [kind for kind in kinds if kind.startswith("torch.")]
    rounds = {"AVG_POOL2D", "RESCALE", "TABLE"} & kinds
    assert off <= (1 if rounds else 0)


REFUSED: dict[str, tuple[cases.Computation, str, str]] = {
    "computed kernel": (
        lambda x: torch.conv2d(torch.relu(x), x[:, :, :3, :3] * 0.5),
        "aten.conv2d",
        "its weight is no constant",
    ),
    "scattered indices": (
        lambda x: torch.relu(x).repeat(1, 1, 1, 50)[..., list(range(0, 300, 2))],
        "aten.index",
        "its indices are 150 ranges of neighbours, and at most 128",
    ),
    "indices apart": (
        lambda x: torch.relu(x)[:, [0, 1], :, [2, 3]],
        "aten.index",
        "its indices are of dimensions apart",
    ),
    "sums at indices": (
        lambda x: torch.index_put(torch.relu(x), (torch.tensor([0]),), x, accumulate=True),
        "aten.index_put",
        "it adds to what is there",
    ),
    "sort": (lambda x: torch.relu(x).sort(1).values, "aten.sort", "TOSA sorts nothing"),
    "prod": (lambda x: x.prod(1), "aten.prod", "no NPU multiplies along a dimension"),
    "cumprod": (
        lambda x: torch.relu(x).cumprod(1),
        "aten.cumprod",
        "there is no TOSA form of aten.cumprod",
    ),
    "strides of another order": (
        lambda x: torch.as_strided(torch.relu(x).permute(0, 2, 3, 1), (2, 2), (3, 1)),
        "aten.as_strided",
        "its input is in another order",
    ),
    "power": (lambda x: x.abs() ** x, "aten.pow", "a power of two tensors"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    computation, kind, reason = REFUSED[name]
    assert reason in lowered(computation, image()).on_cpu[kind]


EDGES: dict[str, tuple[cases.Computation, float]] = {
    "acos": (torch.acos, math.pi),
    "asin": (torch.asin, -math.pi / 2),
    "acos between": (lambda x: torch.acos(x.clamp(-1.0, 1.0)), math.pi),
}


@pytest.mark.parametrize("name", EDGES)
def test_the_edge_of_a_domain_is_right_where_its_integer_is_beyond(name: str) -> None:
    """-1 is rounded to -1.004; PyTorch then has no number, and the NPU what it has at -1.

    The entry beside it is of a number a step of 2/255 away, where the root of a square makes much.
    """
    function, value = EDGES[name]
    found = lowered(function, torch.tensor([[-1.0, -0.5, 0.3, 1.0]]))
    (table,) = (row for row in found.lowered.graph if row.kind == "TABLE")
    entries: Any = table.operands[1].constant
    quantization = table.result.quantization
    assert quantization is not None
    first = (float(entries[0]) - quantization.zero_point) * quantization.scale
    assert abs(first - value) < 0.13


def test_rows_that_refuse_are_refused_here() -> None:
    refused = [name for name, row in OPERATORS.items() if isinstance(row.integers, Missing)]
    assert {"aten.atan2.default", "aten.sort.default", "aten.prod.dim_int"} <= set(refused)
