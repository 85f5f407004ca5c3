"""Kernels of core ATen operators: bit for bit what PyTorch computes, or within a measured bound."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn
from torch.nn import functional

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import TorchStep
from mizzen.artifact.interface import TensorInfo
from mizzen.diagnostics import MizzenError
from mizzen.export import c_container

from .runtime_host import Host, built, fuzz

T = torch.Tensor
Function = Callable[[T], Any] | Callable[[T, T], Any]


class Module(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arrays: torch.Tensor) -> Any:
        function: Callable[..., Any] = self.function
        return function(*arrays)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), "gcc")


def step_of(function: Function, *arrays: torch.Tensor) -> tuple[Artifact, list[torch.Tensor]]:
    """Return an artifact whose only step is a function, and what PyTorch computes."""
    module = Module(function).eval()
    found = module(*arrays)
    results = list(found) if isinstance(found, tuple | list) else [found]
    rows = [*arrays, *results]
    infos = {
        index: TensorInfo(f"t{index}", tuple(row.shape), row.numpy().dtype, None)
        for index, row in enumerate(rows)
    }
    inputs = tuple(range(len(arrays)))
    outputs = tuple(range(len(arrays), len(rows)))
    step = TorchStep(module, inputs, outputs, ("test",))
    return Artifact(b"", "test.zip", Contents(inputs, outputs, infos, (step,), {})), results


def on_device(program: Path, artifact: Artifact, *arrays: torch.Tensor) -> list[bytes]:
    with Host(program, c_container(artifact).data) as host:
        assert host.status == 0, (host.status, host.step)
        found = host.run(*(array.numpy() for array in arrays))
        assert host.status == 0, (host.status, host.step)
    return found


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole(*shape: int, low: int = -50, high: int = 50, dtype: torch.dtype = torch.int32) -> Any:
    made = torch.Generator().manual_seed(1)
    return torch.randint(low, high, shape, generator=made).to(dtype)


X, Y = random(2, 3, 4), random(2, 3, 4, seed=1)
N, J = whole(2, 3, 4), whole(4, low=1)
B = X > 0
BYTES = whole(2, 3, 4, low=-128, high=127, dtype=torch.int8)
HARD = torch.tensor([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e10, -1e10, 8388607.5, float("nan")])
import_module("torch.ao.quantization.fx._decomposed")  # defines the operators
Q = torch.ops.quantized_decomposed

EXACT: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "add": (lambda x, y: x + y, (X, Y)),
    "add_alpha": (lambda x, y: torch.add(x, y, alpha=2), (X, Y)),
    "add_broadcast": (lambda x, y: x + y, (X, random(3, 1))),
    "subtract_number": (lambda x: x - 0.3, (X,)),
    "multiply_promoted": (lambda x, i: x * i, (X, N)),
    "multiply_bytes_wraps": (lambda x, y: x * y, (BYTES, BYTES)),
    "divide": (lambda x, y: x / y, (X, Y)),
    "divide_integers": (lambda i, j: i / j, (N, J)),
    "divide_floor": (lambda i, j: torch.div(i, j, rounding_mode="floor"), (N, J)),
    "divide_cut": (lambda i, j: torch.div(i, j, rounding_mode="trunc"), (N, J)),
    "maximum": (torch.maximum, (X, Y)),
    "minimum_nan": (lambda x: torch.minimum(x, torch.zeros(1)), (HARD,)),
    "compare": (lambda x, y: (x < y, x >= 0.5, x == y, x != y), (X, Y)),
    "compare_mixed": (lambda i, x: i > x, (N, X)),
    "logical": (lambda x, y: torch.logical_and(x, torch.logical_not(y)), (B, BYTES)),
    "bits": (lambda i: (i & 7) | (~i ^ 3), (N,)),
    "where": (lambda b, x: torch.where(b, x, torch.tensor(2.0)), (B, X)),
    "absolute": (lambda x, i: (x.abs(), i.abs(), -x, -i), (HARD, N)),
    "rounding": (lambda x: (x.round(), x.floor(), x.ceil(), x.sign()), (HARD[:-1],)),
    "clamp": (lambda x: (x.clamp(-0.5, 0.7), x.clamp(min=0.1), x.relu()), (X,)),
    "reciprocal": (lambda x: x.reciprocal(), (X,)),
    "to_int": (lambda x: (x * 40).to(torch.int8), (X,)),
    "to_float": (lambda i: (i.float(), i.to(torch.int64), i.bool()), (N,)),
    "quantize": (lambda x: Q.quantize_per_tensor(x, 0.037, 3, -128, 127, torch.int8), (X,)),
    "dequantize": (lambda q: Q.dequantize_per_tensor(q, 0.1, -7, -128, 127, torch.int8), (BYTES,)),
    "quantize_channels": (
        lambda x: Q.quantize_per_channel(
            x, torch.tensor([0.1, 0.02, 0.3]), torch.tensor([0, 5, -9]), 1, -128, 127, torch.int8
        ),
        (X,),
    ),
    "permute": (lambda x: x.permute(2, 0, 1).contiguous(), (X,)),
    "transpose": (lambda x: x.transpose(0, 2) + 0, (X,)),
    "expand": (lambda x: x.expand(2, 3, 4) + 0, (random(3, 1),)),
    "slice": (lambda x: (x[:, 1:, ::2], x[:, -1], x[..., 1:3]), (X,)),
    "flip": (lambda x: x.flip(0, 2), (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 3, 1), (X,)),
    "cat": (lambda x, y: torch.cat([x, y[:, :2]], 1), (X, Y)),
    "stack": (lambda x, y: torch.stack([x, y], 1), (X, Y)),
    "split": (lambda x: torch.split(x, [1, 3], 2), (X,)),
    "pad": (lambda x: functional.pad(x, (1, 2, 0, 1), value=0.5), (X,)),
    "pad_that_cuts": (lambda x: functional.pad(x, (-1, 2)), (X,)),
    "view": (lambda x: x.reshape(6, 4).unsqueeze(0), (X,)),
    "sum_integers": (lambda i: (i.sum(), i.sum((0, 2)), i.sum(1, keepdim=True)), (N,)),
    "amax": (lambda x: (x.amax((0, 2)), x.amin(-1), x.amax()), (X,)),
    "arguments": (lambda x: (x.argmax(1), x.argmin(), x.argmax(-1, keepdim=True)), (X,)),
    "max_dim": (lambda x: torch.max(x, 2), (X,)),
    "any": (lambda b: (b.any(), b.any(1), b.all(2)), (B,)),
    "cumsum_integers": (lambda i: i.cumsum(1), (N,)),
    "cumsum": (lambda x: x.cumsum(2), (X,)),
    "sort": (lambda x: torch.sort(x, 1, descending=True), (X,)),
    "sort_ties": (lambda x: torch.sort(x, dim=2, stable=True), (whole(2, 3, 20, low=0, high=4),)),
    "topk": (lambda x: torch.topk(x, 2, 2), (X,)),
    "index_select": (lambda x, i: x.index_select(1, i), (X, torch.tensor([2, 0, 0]))),
    "index": (lambda x, i: x[:, i], (X, torch.tensor([[2, -1], [0, 1]]))),
    "embedding": (lambda x, i: functional.embedding(i, x), (X[0], torch.tensor([[2, 1]]))),
    "gather": (lambda x, i: x.gather(1, i), (X, torch.tensor([[[2, 0], [1, 1]]]))),
    "nearest by factors": (
        lambda x: functional.interpolate(x, scale_factor=(2.5, 1.3)),
        (random(1, 2, 5, 7),),
    ),
    "nearest": (lambda x: functional.interpolate(x, (7, 9)), (random(1, 2, 3, 4),)),
    "full": (lambda x: x + torch.arange(4) * 2 + torch.full((4,), 3.0), (X,)),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_operators_give_pytorchs_bits(program: Path, name: str) -> None:
    function, arrays = EXACT[name]
    artifact, expected = step_of(function, *arrays)
    found = on_device(program, artifact, *arrays)
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        array = np.frombuffer(one, other.numpy().dtype).reshape(other.shape)
        np.testing.assert_array_equal(array, other.numpy(), f"output {place}")


LINE = torch.linspace(-20, 20, 4001)
BOUNDED: dict[str, tuple[Function, tuple[torch.Tensor, ...], int]] = {
    "exp": (torch.exp, (torch.linspace(-110, 95, 4001),), 1),
    "log": (torch.log, (torch.logspace(-38, 38, 4001),), 1),
    "tanh": (torch.tanh, (torch.cat([LINE, LINE / 1000]),), 1),
    "sigmoid": (torch.sigmoid, (LINE * 4,), 2),
    "sqrt": (torch.sqrt, (torch.logspace(-40, 38, 2001),), 1),
    "rsqrt": (torch.rsqrt, (torch.logspace(-30, 30, 2001),), 1),
    "softmax": (lambda x: x.softmax(1), (random(3, 40),), 3),
    "log_softmax": (lambda x: x.log_softmax(0), (random(40, 3),), 3),
    "bilinear": (
        lambda x: functional.interpolate(x.abs(), (7, 9), mode="bilinear"),
        (random(2, 3, 5, 4),),
        2,
    ),
    "bilinear aligned": (
        lambda x: functional.interpolate(x.abs(), (4, 11), mode="bilinear", align_corners=True),
        (random(2, 3, 5, 4),),
        2,
    ),
    "bilinear by factors": (
        lambda x: functional.interpolate(x.abs(), scale_factor=(2.0, 1.5), mode="bilinear"),
        (random(2, 3, 5, 4),),
        2,
    ),
    "sum": (lambda x: x.abs().sum(1), (random(3, 100),), 2),
    "mean": (lambda x: x.abs().mean((0, 2)), (random(3, 4, 50),), 2),
}
"""Functions of reals, with the greatest distance from PyTorch's in units of the last place that
was measured on these numbers: PyTorch's own vectors are within one of the exact result."""


@pytest.mark.parametrize("name", BOUNDED)
def test_functions_of_reals_are_close(program: Path, name: str) -> None:
    function, arrays, bound = BOUNDED[name]
    artifact, (expected,) = step_of(function, *arrays)
    (found,) = on_device(program, artifact, *arrays)
    places = [
        np.frombuffer(row, "<i4").astype(np.int64) for row in (found, expected.numpy().tobytes())
    ]
    # Counted from zero, floats are ordered as their bits are.
    ordered = [np.where(row < 0, -(2**31) - row, row) for row in places]
    assert int(np.abs(ordered[0] - ordered[1]).max()) <= bound


def test_square_roots_are_exact(program: Path) -> None:
    x = torch.logspace(-40, 38, 2001)
    artifact, _ = step_of(torch.sqrt, x)
    assert on_device(program, artifact, x) == [np.sqrt(x.numpy()).tobytes()]


def test_an_index_outside_is_an_error(program: Path) -> None:
    function, (x, indices) = EXACT["index_select"]
    artifact, _ = step_of(function, x, indices)
    with Host(program, c_container(artifact).data) as host:
        host.run(x.numpy(), np.array([0, 3, 1]))
        assert (host.status, host.step) == (9, 0)


def test_what_no_kernel_takes_is_refused() -> None:
    artifact, _ = step_of(lambda x: x.double() + 1, X)
    with pytest.raises(MizzenError) as caught:
        c_container(artifact)
    assert str(caught.value) == (
        "error[E465]: the C runtime takes aten::add.Tensor with limits: numbers must have 32 bits, "
        "not 64\n"
        "  at   test.zip, aten::add.Tensor\n"
        "  help export for a runtime that has it, or replace the operator in the model; "
        "`mizzen run` executes it on the host"
    )


@pytest.mark.sweep
def test_kernels_of_damaged_containers_stay_inside(tmp_path: Path) -> None:
    hardened = built(tmp_path, "clang")
    for seed, (name, (function, arrays)) in enumerate(EXACT.items()):
        artifact, _ = step_of(function, *arrays)
        assert sum(fuzz(hardened, c_container(artifact).data, 2000, seed)) == 2000, name
