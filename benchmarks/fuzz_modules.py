"""Random PyTorch modules: layers, views, broadcasts, attention, of 5 to 15 operators.

A module grows on its example: each operator takes tensors that are there and is kept if PyTorch
computes it and it is not too large. What nobody takes is an output.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

MOST_ELEMENTS = 3000
LEAST, MOST = 5, 15

Tensor = torch.Tensor
Unary = Callable[[Tensor], Any]
Binary = Callable[[Tensor, Tensor], Any]
Step = Unary | Binary


class Random(nn.Module):
    """A module of steps, each of which takes tensors by number and appends what it gives."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        torch.manual_seed(self.rng.randrange(1 << 31))
        self.layers = nn.ModuleList()
        self.steps: list[tuple[Any, tuple[int, ...]]] = []
        self.example = tuple(self._input() for _ in range(self.rng.choice((1, 1, 2))))
        self.outputs: list[int] = []
        self._grow()

    def _input(self) -> Tensor:
        rank = self.rng.choice((4, 4, 4, 3, 2))
        sizes = [self.rng.choice((3, 4, 5, 7, 8, 12)) for _ in range(rank - 1)]
        sizes[0] = self.rng.choice((1, 2, 3, 4, 5, 8, 16)) if rank > 2 else sizes[0]
        return torch.randn(1, *sizes)

    def _grow(self) -> None:
        found = list(self.example)
        used = set[int]()
        wanted = self.rng.randint(LEAST, MOST)
        for _ in range(MOST * 10):
            if len(self.steps) >= wanted:
                break
            index = max(0, len(found) - 1 - int(self.rng.expovariate(0.6)))
            other = self.rng.randrange(len(found))
            layers = len(self.layers)
            try:
                made: Any
                step: Any
                step, places = self.rng.choice(OPERATORS)(self, found, index, other)
                with torch.no_grad():
                    made = step(*(found[place] for place in places))
            except (RuntimeError, ValueError, IndexError, TypeError):
                self.layers = self.layers[:layers]
                continue
            made = made if isinstance(made, tuple) else (made,)
            if any(not 0 < row.numel() <= MOST_ELEMENTS or row.dim() > 5 for row in made):
                self.layers = self.layers[:layers]
                continue
            found += made
            used |= set(places)
            self.steps.append((step, places))
        made = range(len(self.example), len(found))
        self.outputs = [place for place in made if place not in used] or [len(found) - 1]

    def layer(self, module: nn.Module) -> Any:
        """Add a layer; return a step of it."""
        self.layers.append(module.eval())
        return module

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute all steps; return what none of them takes."""
        found = list(inputs)
        for step, places in self.steps:
            made = step(*(found[place] for place in places))
            found += made if isinstance(made, tuple) else (made,)
        return tuple(found[place] for place in self.outputs)


Made = tuple[Step, tuple[int, ...]]
Grow = Callable[[Random, list[Tensor], int, int], Made]


def convolution(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a convolution of any kind."""
    x, rng = found[index], g.rng
    depth, out = x.shape[1], rng.choice((1, 2, 4, 5, 8))
    size, stride = rng.choice((1, 2, 3, 3, 5)), rng.choice((1, 1, 2))
    if x.dim() == 3:
        return g.layer(nn.Conv1d(depth, out, size, stride, size // 2)), (index,)
    if x.dim() != 4:
        raise ValueError
    kind = rng.choice(("plain", "plain", "depthwise", "multiplied", "transposed", "dilated"))
    match kind:
        case "depthwise" | "multiplied":
            out = depth * (1 if kind == "depthwise" else 2)
            layer = nn.Conv2d(depth, out, size, stride, size // 2, groups=depth)
        case "transposed":
            layer = nn.ConvTranspose2d(
                depth, out, rng.choice((2, 3, 4)), stride, rng.choice((0, 1))
            )
        case "dilated":
            layer = nn.Conv2d(depth, out, (3, rng.choice((1, 3))), 1, 2, dilation=2)
        case _:
            layer = nn.Conv2d(depth, out, (size, rng.choice((1, 3))), stride, 1,
                              bias=rng.random() < 0.8)  # fmt: skip
    return g.layer(layer), (index,)


def linear(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a dense layer."""
    return g.layer(nn.Linear(found[index].shape[-1], g.rng.choice((1, 3, 4, 8)))), (index,)


def norm(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a normalisation."""
    x = found[index]
    layers: list[nn.Module] = [nn.LayerNorm(x.shape[-1]), nn.GroupNorm(1, x.shape[1])]
    if x.dim() == 4:
        layers.append(nn.BatchNorm2d(x.shape[1]))
    return g.layer(g.rng.choice(layers)), (index,)


FUNCTIONS: tuple[Unary, ...] = (
    torch.relu, torch.sigmoid, torch.tanh, torch.abs, torch.neg, functional.relu6,
    functional.hardswish, functional.silu, functional.gelu, functional.leaky_relu, functional.elu,
    functional.hardsigmoid, lambda x: torch.clamp(x, -0.5, 0.7), lambda x: x * 0.3,
    lambda x: x + 0.25, lambda x: torch.softmax(x, -1), lambda x: torch.softmax(x, 1),
    lambda x: torch.exp(-x * x), lambda x: torch.sqrt(torch.relu(x) + 0.1), lambda x: x**2,
    lambda x: 1.0 / (torch.abs(x) + 0.5), lambda x: torch.rsqrt(x * x + 0.3),
)  # fmt: skip


def function(g: Random, _found: list[Tensor], index: int, _other: int) -> Made:
    """Return a function of one tensor."""
    return g.rng.choice(FUNCTIONS), (index,)


def pool(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a pool, a reduction, or a resize."""
    x, rng = found[index], g.rng
    if x.dim() == 4 and rng.random() < 0.7:
        size, stride = rng.choice((2, 3)), rng.choice((1, 2))
        rows: tuple[Unary, ...] = (
            lambda x: functional.max_pool2d(x, size, stride, size // 2),
            lambda x: functional.avg_pool2d(x, size, stride),
            lambda x: functional.adaptive_avg_pool2d(x, 1),
            lambda x: functional.interpolate(x, scale_factor=2.0),
            lambda x: functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
            lambda x: functional.pixel_shuffle(x, 2),
            lambda x: functional.pad(x, (1, 0, 2, 1)),
        )
        return rng.choice(rows), (index,)
    axis, keep = rng.randrange(1, x.dim()), rng.random() < 0.5
    reduced: tuple[Unary, ...] = (
        lambda x: x.mean(axis, keep), lambda x: x.sum(axis, keep), lambda x: x.amax(axis, keep),
        lambda x: x.amin(axis, keep),
    )  # fmt: skip
    return rng.choice(reduced), (index,)


BINARY: tuple[Binary, ...] = (
    torch.add, torch.add, torch.sub, torch.mul, torch.mul, torch.maximum, torch.minimum,
)  # fmt: skip


def binary(g: Random, found: list[Tensor], index: int, other: int) -> Made:
    """Return an operator of two tensors that broadcast to each other."""
    fitting = [place for place, row in enumerate(found) if _fits(row, found[index])]
    places = [index, g.rng.choice(fitting) if g.rng.random() < 0.8 else other]
    g.rng.shuffle(places)
    return g.rng.choice(BINARY), tuple(places)


def _fits(one: Tensor, other: Tensor) -> bool:
    try:
        return len(torch.broadcast_shapes(one.shape, other.shape)) <= 4
    except RuntimeError:
        return False


def outer(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return an operator both of whose operands are broadcast."""
    x, rng = found[index], g.rng
    operator = rng.choice(BINARY)
    if x.dim() not in (2, 3):
        flat = x.flatten()[:12].shape[0]
        rows: tuple[Unary, ...] = (
            lambda x: torch.outer(x.flatten()[:flat], x.flatten()[:flat]),
            lambda x: operator(x.flatten()[:flat, None], x.flatten()[None, :flat]),
            lambda x: torch.kron(x.flatten()[:4], x.flatten()[:flat]),
        )
        return rng.choice(rows), (index,)
    one, two = rng.sample(range(1, x.dim() + 1), 2)
    return lambda x: operator(x.unsqueeze(one), x.unsqueeze(two)), (index,)


def view(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a view of a tensor."""
    x, rng = found[index], g.rng
    axes = list(range(x.dim()))
    inner = axes[1:]
    rng.shuffle(inner)
    one, two = (rng.choice(axes[1:] or axes) for _ in range(2))
    size = x.shape[one]
    start, step = rng.randrange(size), rng.choice((1, 1, 2))
    stop = rng.randint(start + 1, size)
    pieces = [row for row in (2, 3, 4) if size % row == 0] or [1]
    piece = rng.choice(pieces)
    shape = (*x.shape[:one], piece, size // piece, *x.shape[one + 1 :])
    cut = tuple(slice(start, stop, step) if axis == one else slice(None) for axis in axes)
    rows: tuple[Unary, ...] = (
        lambda x: x.permute(0, *inner), lambda x: x.transpose(one, two), lambda x: x.flatten(1),
        lambda x: x.reshape(shape), lambda x: x.unsqueeze(one), lambda x: x[cut], lambda x: x[cut],
        lambda x: x.flip(one), lambda x: torch.roll(x, 1, one), lambda x: x.reshape(1, -1),
        lambda x: x.reshape(x.shape[0], x.shape[-1], -1), lambda x: x.select(one, start),
        lambda x: x.repeat_interleave(2, one), lambda x: torch.cat([x, x[cut]], one),
    )  # fmt: skip
    return rng.choice(rows), (index,)


def parts(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return parts of a tensor."""
    x = found[index]
    axis = g.rng.randrange(1, x.dim())
    if x.shape[axis] < 2:
        raise ValueError
    size = g.rng.randint(1, x.shape[axis] - 1)
    return lambda x: torch.split(x, [size, x.shape[axis] - size], axis), (index,)


def joined(g: Random, found: list[Tensor], index: int, other: int) -> Made:
    """Return tensors side by side."""
    x = found[index]
    axis = g.rng.randrange(x.dim())
    rest = [*x.shape[:axis], *x.shape[axis + 1 :]]
    fitting = [
        place for place, row in enumerate(found)
        if row.dim() == x.dim() and [*row.shape[:axis], *row.shape[axis + 1 :]] == rest
    ]  # fmt: skip
    places = (index, g.rng.choice(fitting))
    if g.rng.random() < 0.2:
        return lambda x: torch.stack([x, x], axis), (index,)
    return lambda one, two: torch.cat([one, two], axis), places


def attention(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a product of tensors as attention has it, with or without a softmax."""
    x, rng = found[index], g.rng
    if x.dim() < 3:
        raise ValueError
    if rng.random() < 0.4:
        return lambda x: x @ x.transpose(-1, -2), (index,)
    if rng.random() < 0.3:
        other = rng.randrange(len(found))
        return lambda x, y: x @ y.transpose(-1, -2), (index, other)
    return lambda x: torch.softmax(x @ x.transpose(-1, -2) * 0.5, -1) @ x, (index,)


def rotary(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a rotary embedding of rows."""
    x = found[index]
    width = x.shape[-1]
    if width % 2 or x.dim() < 2:
        raise ValueError
    angles = torch.outer(torch.arange(x.shape[-2]), 100.0 ** -torch.arange(0, 1, 2 / width))
    cosine, sine = (torch.cat([row, row], -1) for row in (angles.cos(), angles.sin()))

    def rotate(x: Tensor) -> Tensor:
        one, two = x.chunk(2, -1)
        return x * cosine + torch.cat([-two, one], -1) * sine

    return rotate, (index,)


def residual(g: Random, found: list[Tensor], index: int, _other: int) -> Made:
    """Return a block of layers and its input together."""
    x = found[index]
    if x.dim() != 4:
        raise ValueError
    first = g.layer(nn.Conv2d(x.shape[1], 8, 1))
    second = g.layer(nn.Conv2d(8, x.shape[1], 3, padding=1))
    last = g.rng.choice((torch.relu, functional.hardswish, torch.sigmoid))
    gate = g.rng.random() < 0.3
    if gate:
        return lambda x: x * last(second(torch.relu(first(x.mean((2, 3), True))))), (index,)
    return lambda x: last(x + second(torch.relu(first(x)))), (index,)


OPERATORS: tuple[Grow, ...] = (
    convolution, convolution, convolution, linear, linear, norm, function, function, function, pool,
    pool, binary, binary, outer, view, view, view, parts, joined, attention, rotary, residual,
)  # fmt: skip
