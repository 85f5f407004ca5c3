"""Whole programs: element types, updates in place, state, indices, odd outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import Tensor, nn

from mizzen.compiler.torch.call import Call as Arguments
from mizzen.compiler.torch.exported import export
from mizzen.frontends.torch.fp_lowering import lower_float, read_float
from mizzen.graph import DType, Graph
from mizzen.passes import plain

from .accuracy import UNIT, Array
from .drawn import Call, normal


def lowered(module: nn.Module, *inputs: Tensor) -> Graph:
    graph = lower_float(read_float(export(module.eval(), Arguments(inputs), "net"), "net"))
    plain().run(graph)
    return graph


def held(tensor: Tensor) -> Array:
    tensor = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return tensor.to(torch.int32).numpy() if tensor.dtype is torch.int64 else tensor.numpy()


def check(oracle: Any, module: nn.Module, *inputs: Tensor, bound: float = 0.0) -> Graph:
    """Compare the outputs, which may differ by `bound` of the greatest, with eager PyTorch's."""
    graph = lowered(module, *inputs)
    with torch.no_grad():
        wanted = module(*(each.clone() for each in inputs))
    rows = wanted if isinstance(wanted, tuple) else (wanted,)
    found = oracle(graph, [held(each) for each in inputs])[: len(rows)]
    for row, tensor in zip(found, rows, strict=True):
        exact = held(tensor)
        assert row.dtype == exact.dtype
        error = np.abs(row.astype(np.float64) - exact)
        assert error.max() <= bound * max(1.0, float(np.abs(exact).max()))
    return graph


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.conv(x))
        y += x
        return y.relu_()


SMALL_SUM = 64 * UNIT
"""A bound for sums of less than 64 terms, each less than the greatest output."""


def test_updates_in_place_need_no_second_trace(
    tosa_oracle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def traced(exported: object) -> None:
        pytest.fail("it was traced again")

    monkeypatch.setattr("mizzen.frontends.torch.fp_lowering.fp_reading.functional", traced)
    graph = check(tosa_oracle, _Residual(), torch.rand(1, 4, 6, 6), bound=SMALL_SUM)
    assert [row.kind for row in graph if row.kind in ("ADD", "CLAMP")] == ["ADD", "CLAMP"]


class _Viewed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2.0
        y[:, 0].add_(1.0)
        row = y.view(-1)
        row.mul_(3.0)
        return y


def test_update_through_a_view_reaches_the_tensor(tosa_oracle: Any) -> None:
    check(tosa_oracle, _Viewed(), torch.arange(6.0).reshape(2, 3))


class _Kept(nn.Module):
    """The tensor that is updated in place is read afterwards under its old name."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x + 1.0
        z = y.mul_(2.0)
        return y + x, z


def test_tensor_updated_in_place_is_read_afterwards(tosa_oracle: Any) -> None:
    check(tosa_oracle, _Kept(), torch.arange(6.0).reshape(2, 3))


class _Counting(nn.Module):
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.mul_(2.0)
        return x + self.seen


def test_state_is_an_input_and_an_output_behind_the_others(tosa_oracle: Any) -> None:
    graph = lowered(_Counting(), torch.zeros(2, 3))
    assert [value.shape for value in graph.inputs] == [(2, 3), (3,)]
    given = [np.zeros((2, 3), np.float32), np.ones(3, np.float32)]
    output, state = tosa_oracle(graph, given)
    assert (output == 2.0).all()
    assert (state == 2.0).all()


class _Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        return self.table(ids).sum(1), self.table(ids).argmax(-1)


def test_indices_of_64_bits_have_32(tosa_oracle: Any) -> None:
    graph = check(tosa_oracle, _Tokens(), torch.tensor([[1, 10, 0], [3, 3, 7]]), bound=SMALL_SUM)
    assert graph.inputs[0].dtype is DType.INT32
    assert [value.dtype for value in graph.outputs] == [DType.FP32, DType.INT32]


class _Constants(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(4.0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        y = x + 1.0
        return self.table * 2.0, y, y, x


def test_constants_inputs_and_repeated_outputs(tosa_oracle: Any) -> None:
    check(tosa_oracle, _Constants(), torch.zeros(4))


DECOMPOSED: tuple[Callable[[Tensor], Any], ...] = (
    lambda x: torch.addcmul(x, x, x, value=0.5),
    lambda x: torch.lerp(x, x * 2.0, 0.25),
    lambda x: torch.std_mean(x, dim=1, correction=0)[1],
    lambda x: torch.nan_to_num(x / 0.0, nan=0.5, posinf=2.0),
    lambda x: torch.addcdiv(x, x, x + 1.0),
    lambda x: torch.einsum("ij,kj->ik", x, x),
    lambda x: x.masked_fill(torch.ones(3, 4).triu(1) > 0, 0.0),
    lambda x: torch.full_like(x, 2.0) - x,
    lambda x: x[:, [0, -1]],
    lambda x: x.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]])),
)


@pytest.mark.parametrize("function", DECOMPOSED)
def test_operators_that_pytorch_decomposes(function: Any, tosa_oracle: Any) -> None:
    x = torch.arange(12.0).reshape(3, 4) / 8.0
    check(tosa_oracle, Call(function), x, bound=SMALL_SUM)


@pytest.mark.parametrize("kind", ["residual", "mixed"])
def test_core_aten(kind: str, tosa_oracle: Any) -> None:
    """Programs that were brought to core ATen, as other flows leave them."""
    torch.manual_seed(0)
    module = (_Residual() if kind == "residual" else _Mixed()).eval()
    inputs = (torch.rand(1, 4 if kind == "residual" else 3, 6 + 2 * (kind == "mixed"), 8),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's of its own classes
        program = export(module, Arguments(inputs), "net").run_decompositions()
    graph = lower_float(read_float(program, "net"))
    plain().run(graph)
    with torch.no_grad():
        wanted = module(*inputs).numpy()
    (found,) = tosa_oracle(graph, [each.numpy() for each in inputs])
    assert np.abs(found - wanted).max() <= SMALL_SUM * max(1.0, float(np.abs(wanted).max()))
    assert "MUL" not in {row.kind for row in graph} or kind == "mixed"


class _Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.LayerNorm(6)
        self.out = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.avg_pool2d(nn.functional.gelu(self.conv(x)), 1)
        x = self.out(self.norm(x)) * 0.3
        return torch.softmax(x @ x.transpose(-1, -2), -1)


@pytest.mark.parametrize(
    ("dtype", "unit"), [(torch.float16, 2.0**-11), (torch.bfloat16, 2.0**-8)]
)  # fmt: skip
def test_short_floating_point_numbers(dtype: torch.dtype, unit: float, tosa_oracle: Any) -> None:
    """Each of some thirty operations in a row rounds to the short type, ours and PyTorch's."""
    from random import Random

    torch.manual_seed(0)
    module, x = _Mixed().to(dtype), normal(Random(1), 1, 3, 8, 8).to(dtype)
    graph = check(tosa_oracle, module, x, bound=30 * unit)
    assert graph.inputs[0].dtype.value == {torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]


class _Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: Tensor, state: Tensor, weight: Tensor) -> Tensor:
        x = nn.functional.linear(self.recurrent(x, state)[0], weight)
        return x @ x.transpose(-1, -2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_of_short_numbers_are_added_up_in_32_bits(dtype: torch.dtype) -> None:
    inputs = [torch.ones(shape, dtype=dtype) for shape in ((1, 3, 4), (1, 1, 4), (5, 4))]
    graph = lowered(_Products().to(dtype), *inputs)
    sums = [operation.result.dtype.value for operation in graph if operation.kind == "MATMUL"]
    assert sums == ["f32"] * 5, "three steps, the linear layer, the product"
