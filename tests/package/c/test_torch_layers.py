"""Layers of PyTorch on the C runtime: as close to the exact result as PyTorch's, or its bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn
from torch.nn import functional

from mizzen.export import c_container

from .runtime_host import built, fuzz
from .test_torch_kernels import Function, on_device, random, step_of, whole

TOLERANCE = 2.0**-22
"""Of the greatest number of the exact result: four units in the last place of it."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), "gcc")


def seeded(layer: nn.Module) -> nn.Module:
    """Return a layer in evaluation with numbers that are always the same."""
    made = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, held in [*layer.named_parameters(), *layer.named_buffers()]:
            if held.is_floating_point():
                drawn = torch.randn(held.shape, generator=made)
                held.copy_(drawn.abs() + 0.5 if name == "running_var" else drawn)
    return layer.eval().requires_grad_(False)


IMAGE, ROW = random(2, 4, 9, 7), random(2, 4, 19)
LINE = torch.linspace(-9, 9, 2001)
MATRICES = random(3, 5, 6), random(3, 6, 4, seed=1)

MODULES: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "convolution": (nn.Conv2d(4, 6, 3), (IMAGE,)),
    "convolution strided": (nn.Conv2d(4, 6, (3, 2), (2, 3), (1, 0), bias=False), (IMAGE,)),
    "convolution dilated": (nn.Conv2d(4, 6, 2, 1, 2, dilation=(3, 2)), (IMAGE,)),
    "convolution in groups": (nn.Conv2d(4, 6, 3, padding=1, groups=2), (IMAGE,)),
    "convolution depthwise": (nn.Conv2d(4, 8, 3, groups=4), (IMAGE,)),
    "convolution of rows": (nn.Conv1d(4, 5, 4, 3, 2, 2), (ROW,)),
    "transposed": (nn.ConvTranspose2d(4, 5, 3, 2, 1, 1), (IMAGE,)),
    "transposed dilated": (nn.ConvTranspose2d(4, 5, 2, (3, 1), dilation=2), (IMAGE,)),
    "transposed in groups": (nn.ConvTranspose2d(4, 6, 3, 2, groups=2), (IMAGE,)),
    "transposed rows": (nn.ConvTranspose1d(4, 3, 4, 3, 1), (ROW,)),
    "linear": (nn.Linear(7, 5), (IMAGE,)),
    "linear without bias": (nn.Linear(7, 5, bias=False), (random(3, 7),)),
    "layer norm": (nn.LayerNorm([9, 7]), (IMAGE,)),
    "layer norm without weights": (nn.LayerNorm(7, elementwise_affine=False), (IMAGE,)),
    "group norm": (nn.GroupNorm(2, 4), (IMAGE,)),
    "batch norm": (nn.BatchNorm2d(4), (IMAGE,)),
    "batch norm of rows": (nn.BatchNorm1d(4, affine=False), (ROW,)),
    "adaptive pool": (nn.AdaptiveAvgPool2d((3, 1)), (IMAGE,)),
    "average pool": (nn.AvgPool2d(3, 2, 1), (IMAGE,)),
}
FUNCTIONS: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "product": (torch.matmul, MATRICES),
    "product of broadcast": (torch.matmul, (random(2, 1, 5, 6), random(3, 6, 4))),
    "gelu": (functional.gelu, (LINE,)),
    "gelu by tangent": (lambda x: functional.gelu(x, approximate="tanh"), (LINE,)),
    "elu": (lambda x: functional.elu(x, 0.7), (LINE,)),
    "selu": (functional.selu, (LINE,)),
    "silu": (functional.silu, (LINE,)),
    "hardswish": (functional.hardswish, (LINE,)),
    "mish": (functional.mish, (LINE / 4,)),
    "softplus": (functional.softplus, (LINE / 4,)),
    "erf": (torch.erf, (LINE,)),
    "expm1": (torch.expm1, (torch.cat([LINE / 9, LINE / 9000]),)),
    "variance": (lambda x: x.var((1, 3)), (IMAGE,)),
    "deviation": (lambda x: x.std(1, correction=0, keepdim=True), (IMAGE,)),
    "log1p": (torch.log1p, (torch.cat([LINE.abs(), LINE / 9000]),)),
    "log2": (torch.log2, (LINE.abs() + 0.1,)),
    "log10": (torch.log10, (LINE.abs() + 0.1,)),
    "sine": (torch.sin, (torch.cat([LINE, LINE * 1000, LINE * 1e8, LINE * 3e37]),)),
    "cosine": (torch.cos, (torch.cat([LINE, LINE * 1e5, LINE * 1e20]),)),
    "attention": (
        lambda q, k: functional.scaled_dot_product_attention(q, k, k),
        (random(2, 3, 5, 8), random(2, 3, 5, 8, seed=1)),
    ),
}


@pytest.mark.parametrize("name", [*MODULES, *FUNCTIONS])
def test_layers_are_close_to_the_exact_result(program: Path, name: str) -> None:
    function, arrays = {**MODULES, **FUNCTIONS}[name]
    if isinstance(function, nn.Module):
        function = seeded(function)
    artifact, results = step_of(function, *arrays)
    found = on_device(program, artifact, *arrays)
    wide: Any = function.double() if isinstance(function, nn.Module) else function
    exact = wide(*(array.double() for array in arrays)).detach().numpy()
    given = np.frombuffer(found[0], "<f4").reshape(exact.shape)
    bound = TOLERANCE * np.abs(exact).max()
    theirs = np.abs(results[0].detach().numpy() - exact).max()
    assert np.abs(given - exact).max() <= max(bound, theirs)


N = whole(2, 3, 4)
HARD = torch.tensor([[0.0, -0.0, float("nan")], [float("inf"), -float("inf"), -2.7]])
EXACT: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "max pool": (lambda x: functional.max_pool2d(x, 3, 2, 1), (IMAGE,)),
    "max pool dilated": (lambda x: functional.max_pool2d(x, (2, 3), 1, 1, 2), (IMAGE,)),
    "max pool rounded up": (lambda x: functional.max_pool2d(x, 2, 2, ceil_mode=True), (IMAGE,)),
    "leaky relu": (functional.leaky_relu, (HARD,)),
    "power": (lambda x: (x**2, x**3, x**-1, x**1), (IMAGE,)),
    "unknown": (lambda x: (x.isnan(), x.isinf(), x.trunc()), (HARD,)),
    "remainder": (lambda n: (n % 7, n % -7, torch.fmod(n, 7)), (N,)),
    "select scatter": (lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, -1), (IMAGE,)),
    "slice scatter": (lambda x: torch.slice_scatter(x, x[..., :2], 3, 1, 5, 2), (IMAGE,)),
    "reflection": (lambda x: functional.pad(x, (1, 2, 3, 0), mode="reflect"), (IMAGE,)),
    "replication": (lambda x: functional.pad(x, (1, 2, 3, 0), mode="replicate"), (IMAGE,)),
    "reflected rows": (lambda x: functional.pad(x, (2, 3), mode="reflect"), (ROW,)),
}


@pytest.mark.parametrize("name", EXACT)
def test_these_have_pytorchs_bits(program: Path, name: str) -> None:
    function, arrays = EXACT[name]
    artifact, results = step_of(function, *arrays)
    found = on_device(program, artifact, *arrays)
    for one, other in zip(found, results, strict=True):
        expected = other.numpy()
        np.testing.assert_array_equal(np.frombuffer(one, expected.dtype).reshape(expected.shape),
                                      expected)  # fmt: skip


@pytest.mark.sweep
def test_kernels_of_damaged_containers_stay_inside(tmp_path: Path) -> None:
    hardened = built(tmp_path, "clang")
    for seed, (name, (function, arrays)) in enumerate({**MODULES, **FUNCTIONS}.items()):
        held = seeded(function) if isinstance(function, nn.Module) else function
        artifact, _ = step_of(held, *arrays)
        assert sum(fuzz(hardened, c_container(artifact).data, 2000, seed)) == 2000, name
