"""Single operators over random shapes and attributes: what is computed, on what, how exactly.

`terms` counts roundings. For a linear operator the error is at most as many units of the same
computation on absolute values, which is the classic bound of sums in any order; for others, as many
units of the greatest output, or of 1 where that is greater, each step being right to a few units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Draw = Callable[[Random], "Case"]


@dataclass(frozen=True)
class Case:
    """One computation: `linear` says by which of the two bounds."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    terms: int
    linear: bool = False


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def normal(r: Random, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    return torch.randn(*shape, generator=generator)


def shape(r: Random, least: int = 1, most: int = 4) -> list[int]:
    return [r.randint(1, 5) for _ in range(r.randint(least, most))]


def conv2d(r: Random) -> Case:
    groups = r.choice((1, 1, 2, 4))
    cin, cout = groups * r.randint(1, 3), groups * r.randint(1, 3)
    kernel = (r.randint(1, 3), r.randint(1, 3))
    module = nn.Conv2d(
        cin, cout, kernel, stride=(r.randint(1, 3), r.randint(1, 2)),
        padding=(r.randint(0, 2), r.randint(0, 2)), dilation=r.randint(1, 2), groups=groups,
        bias=r.random() < 0.7,
    )  # fmt: skip
    inputs = normal(r, r.randint(1, 2), cin, r.randint(5, 9), r.randint(5, 9))
    return Case(module, (inputs,), cin // groups * kernel[0] * kernel[1] + 2, linear=True)


def conv2d_same(r: Random) -> Case:
    kernel = (r.choice((1, 3)), r.choice((1, 3, 5)))
    module = nn.Conv2d(2, 3, kernel, padding="same", dilation=r.randint(1, 2))
    return Case(module, (normal(r, 2, 6, 7),), 2 * kernel[0] * kernel[1] + 2, linear=True)


def conv3d(r: Random) -> Case:
    groups = r.choice((1, 1, 2))
    cin = groups * r.randint(1, 2)
    kernel = (r.randint(1, 3), r.randint(1, 3), r.randint(1, 3))
    module = nn.Conv3d(
        cin, groups * r.randint(1, 2), kernel,
        stride=(r.randint(1, 3), r.randint(1, 2), r.randint(1, 3)),
        padding=(r.randint(0, 1), r.randint(0, 2), r.randint(0, 1)),
        dilation=r.randint(1, 2), groups=groups, bias=r.random() < 0.7,
    )  # fmt: skip
    inputs = normal(r, *r.choice(((), (2,))), cin, *(r.randint(5, 7) for _ in range(3)))
    return Case(module, (inputs,), cin // groups * prod(kernel) + 2, linear=True)


def conv3d_same(r: Random) -> Case:
    kernel = (r.choice((1, 3)), r.choice((1, 3, 5)), 3)
    module = nn.Conv3d(2, 3, kernel, padding="same", dilation=r.randint(1, 2))
    return Case(module, (normal(r, 2, 5, 6, 7),), 2 * prod(kernel) + 2, linear=True)


def conv1d(r: Random) -> Case:
    module = nn.Conv1d(4, 6, r.randint(1, 4), stride=r.randint(1, 3), padding=r.randint(0, 2),
                       groups=r.choice((1, 2)))  # fmt: skip
    return Case(module, (normal(r, 2, 4, r.randint(6, 12)),), 18, linear=True)


def conv_transpose2d(r: Random) -> Case:
    groups = r.choice((1, 2))
    stride = (r.randint(1, 3), r.randint(1, 3))
    module = nn.ConvTranspose2d(
        2 * groups, 3 * groups, (r.randint(1, 4), r.randint(2, 4)), stride=stride,
        padding=(r.randint(0, 1), r.randint(0, 3)), dilation=r.randint(1, 2), groups=groups,
        output_padding=(r.randrange(stride[0]), r.randrange(stride[1])),
    )  # fmt: skip
    return Case(module, (normal(r, 1, 2 * groups, 6, 7),), 2 * 16 + 2, linear=True)


def conv_batch_norm(r: Random) -> Case:
    norm = nn.BatchNorm2d(4)
    with torch.no_grad():
        for each in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            assert each is not None
            each.uniform_(0.5, 2.0)
    first = nn.ConvTranspose2d(3, 4, 2) if r.random() < 0.3 else nn.Conv2d(3, 4, 3)
    return Case(nn.Sequential(first, norm, nn.ReLU()), (normal(r, 1, 3, 7, 7),), 200)


def batch_norm(r: Random) -> Case:
    norm = nn.BatchNorm1d(5, affine=r.random() < 0.5)
    with torch.no_grad():
        norm.get_buffer("running_mean").uniform_(-1, 1)
        norm.get_buffer("running_var").uniform_(0.5, 2)
    return Case(norm, (normal(r, 3, 5, *([4] if r.random() < 0.5 else [])),), 8)


def linear(r: Random) -> Case:
    count = r.randint(1, 40)
    module = nn.Linear(count, r.randint(1, 6), bias=r.random() < 0.5)
    return Case(module, (normal(r, *shape(r, 0, 3), count),), count + 2, linear=True)


def pool(kind: type[nn.Module]) -> Draw:
    def draw(r: Random) -> Case:
        kernel = (r.randint(2, 3), r.randint(2, 3))
        more: dict[str, Any] = (
            {"count_include_pad": r.random() < 0.5} if kind is nn.AvgPool2d else {}
        )
        if more and r.random() < 0.3:
            more["divisor_override"] = r.randint(1, 5)
        module = kind(kernel, stride=r.choice((None, 1, 2, 3)), padding=r.randint(0, 1),
                      ceil_mode=r.random() < 0.5, **more)  # fmt: skip
        batch = [2] if r.random() < 0.7 else []
        return Case(module, (normal(r, *batch, 3, r.randint(5, 9), r.randint(5, 9)),), 14, True)

    return draw


def pool1d(r: Random) -> Case:
    kind = r.choice((nn.MaxPool1d, nn.AvgPool1d))
    return Case(kind(3, stride=r.randint(1, 3), padding=r.randint(0, 1)), (normal(r, 2, 3, 11),), 9)


def adaptive(r: Random) -> Case:
    kind = r.choice((nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d))
    size = (r.randint(1, 4), r.choice((None, 1, 3)))
    return Case(kind(size), (normal(r, 1, 3, r.randint(4, 9), r.randint(4, 9)),), 90)


def each(function: Callable[[Tensor], Tensor], terms: int = 8, low: float | None = None) -> Draw:
    def draw(r: Random) -> Case:
        x = normal(r, *shape(r)) * 2.0
        return Case(Call(function), (x if low is None else x.abs() + low,), terms)

    return draw


def two(function: Callable[[Tensor, Tensor], Tensor], terms: int = 4) -> Draw:
    def draw(r: Random) -> Case:
        whole = shape(r, 1, 4)
        other = [1 if r.random() < 0.3 else size for size in whole][r.randrange(len(whole)) :]
        y = normal(r, *other)
        return Case(Call(function), (normal(r, *whole), y + y.sign() * 0.5), terms)

    return draw


def over(function: Callable[[Tensor, int], Tensor], terms: int = 40) -> Draw:
    def draw(r: Random) -> Case:
        sizes = shape(r, 1, 4)
        axis = r.randint(-len(sizes), len(sizes) - 1)

        def along(x: Tensor) -> Tensor:
            return function(x, axis)

        return Case(Call(along), (normal(r, *sizes) * 2,), terms)

    return draw


def length(x: Tensor, axis: int) -> Tensor:
    found: Any = torch.linalg.vector_norm(x, dim=axis)
    return found


def image(function: Callable[[Tensor], Tensor], terms: int = 12) -> Draw:
    def draw(r: Random) -> Case:
        x = normal(r, r.randint(1, 2), 4, 2 * r.randint(2, 4), 2 * r.randint(2, 4))
        return Case(Call(function), (x,), terms)

    return draw


def resized(r: Random) -> Case:
    size = (r.randint(1, 13), r.randint(1, 13))
    x = normal(r, 1, 2, r.randint(2, 9), r.randint(2, 9))
    if r.random() < 0.5:
        return Case(Call(partial(functional.interpolate, size=size)), (x,), 0)
    corners = r.random() < 0.5
    return Case(
        Call(partial(functional.interpolate, size=size, mode="bilinear", align_corners=corners)),
        (x,),
        12,
    )


def norm_of(make: Callable[[list[int]], nn.Module]) -> Draw:
    def draw(r: Random) -> Case:
        sizes = [r.randint(1, 2), 4, r.randint(2, 6), r.randint(2, 6)]
        module = make(sizes)
        with torch.no_grad():
            for each in module.parameters():
                each.uniform_(0.5, 1.5)
        return Case(module, (normal(r, *sizes),), 200)

    return draw


def attention(r: Random) -> Case:
    heads, rows, columns, width = r.randint(1, 3), r.randint(1, 5), r.randint(2, 6), 4
    query = normal(r, 1, heads, rows, width)
    key, value = normal(r, 1, heads, columns, width), normal(r, 1, heads, columns, width)
    kind = r.choice(("none", "causal", "bool", "float"))
    mask = normal(r, rows, columns)
    if kind == "bool":
        mask = torch.cat([torch.ones(rows, 1, dtype=torch.bool), mask[:, 1:] > 0], 1)

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        given = mask.to(q.dtype) if kind == "float" else mask
        return functional.scaled_dot_product_attention(
            q, k, v, attn_mask=given if kind in ("bool", "float") else None,
            is_causal=kind == "causal",
        )  # fmt: skip

    return Case(Call(function), (query, key, value), 100)


def recurrent(kind: type[nn.Module]) -> Draw:
    def draw(r: Random) -> Case:
        batch_first, both = r.random() < 0.5, r.random() < 0.5
        module = kind(3, 5, num_layers=r.randint(1, 2), batch_first=batch_first,
                      bidirectional=both, bias=r.random() < 0.7)  # fmt: skip
        sizes = [4, 2] if r.random() < 0.8 else [4]
        return Case(Call(module), (normal(r, *sizes, 3),), 400)

    return draw


def product(r: Random) -> Case:
    count = r.randint(1, 9)
    x, y = r.choice((
        ((3, count), (count, 2)), ((2, 3, count), (2, count, 4)), ((2, 1, 3, count), (5, count, 2)),
        ((count,), (count, 3)), ((2, 3, count), (count,)), ((count,), (count,)),
    ))  # fmt: skip
    return Case(Call(torch.matmul), (normal(r, *x), normal(r, *y)), count + 2, linear=True)


def rows(r: Random) -> Case:
    module = nn.Embedding(7, r.randint(1, 5))
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    return Case(module, (torch.randint(0, 7, tuple(shape(r, 1, 3)), generator=generator),), 0)


def picked(r: Random) -> Case:
    index = torch.tensor([r.randrange(4) for _ in range(3)])
    axis = r.randrange(3)
    return Case(Call(partial(torch.index_select, dim=axis, index=index)), (normal(r, 4, 5, 4),), 0)


def put(r: Random) -> Case:
    """Rows, or elements, written at places that are computed, the last of a dimension too."""
    places = r.sample(range(-2, 4), 2)
    rows = torch.tensor([place % 6 for place in places])
    if r.random() < 0.5:
        return Case(Call(_rows_put), (normal(r, 6, 3, 4), rows - 6, normal(r, 2, 3, 4)), 0)
    columns = torch.tensor([r.randrange(4), r.randrange(4)])
    return Case(Call(_elements_put), (normal(r, 3, 6, 4), rows, columns, normal(r, 3, 2)), 0)


def _rows_put(x: Tensor, rows: Tensor, y: Tensor) -> Tensor:
    return torch.index_put(x, (rows,), y)


def _elements_put(x: Tensor, rows: Tensor, columns: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x[:, rows, columns] = y
    return torch.cat([x.flatten(), x[:, rows, columns].flatten()])


def copied(r: Random) -> Case:
    rows = torch.tensor(r.sample(range(6), 2))
    axis = r.randrange(2)

    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.index_copy(x, axis, rows, y)

    return Case(Call(function), (normal(r, 6, 6, 4), normal(r, *((2, 6, 4), (6, 2, 4))[axis])), 0)
