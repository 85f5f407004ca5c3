"""What only Ethos-U85's NPU has: executed, equal to what was lowered, near what PyTorch gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from mizzen.artifact.host_steps import DequantizeStep
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.codegen import step_of
from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
from mizzen.compiler.proof.options import OFF
from mizzen.compiler.torch.placement import place
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.narrowing import read
from mizzen.graph import DType, Graph, Value, integer_range
from mizzen.partition import extract
from mizzen.quantize import get_symmetric_a16w8_quantization_config
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.torch import compile_converted

Build = Callable[..., Any]
Oracle = Callable[[Graph, Sequence[Array]], list[Array]]
Compute = Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]

U85 = "ethos-u85-256"
ROWS = 20
"""Rows of tables that are looked up."""
IMAGE = (1, 3, 12, 12)
SEQUENCE = (1, 6, 16)


class _Computes(nn.Module):
    """One computation, on the inputs or on a convolution's results."""

    def __init__(self, compute: Compute, *, convolves: bool) -> None:
        super().__init__()
        self.compute = compute
        self.convolution = nn.Conv2d(3, 8, 3) if convolves else nn.Identity()
        self.table = nn.Parameter(torch.randn(ROWS, 8))

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        first = self.convolution(inputs[0])
        return self.compute(self, first, inputs[1] if len(inputs) > 1 else first)


@dataclass(frozen=True)
class Case:
    """A computation; `steps` of the output's scale are what it may be off PyTorch's result.

    Results are off by one where roundings tie, and by more where such a tie decides a choice: that
    is `share` of them at most.
    """

    compute: Compute
    shapes: tuple[tuple[int, ...], ...] = (IMAGE,)
    convolves: bool = True
    bits: int = 8
    share: float = 0.0
    indices: frozenset[int] = field(default_factory=frozenset[int])

    def call(self) -> tuple[torch.Tensor, ...]:
        """Draw inputs."""
        return tuple(
            torch.randint(0, ROWS, shape) if index in self.indices else torch.randn(shape)
            for index, shape in enumerate(self.shapes)
        )


PLAIN: dict[str, Any] = {"convolves": False}
CASES: dict[str, Case] = {
    "greater": Case(lambda _, a, __: torch.where(a > 0.25, a, a * 0.5), share=0.01),
    "not less": Case(lambda _, a, __: torch.where(a >= a.mean(1, True), a, -0.5), share=0.01),
    "equal": Case(lambda _, a, __: a.masked_fill(a == 0, 0.5), share=0.01),
    "truths": Case(lambda _, a, __: torch.where((a > 0) & ~(a > 0.5), a, -a), share=0.01),
    "argmax": Case(lambda _, a, __: torch.argmax(a, 1), share=0.01),
    "argmax of rows": Case(lambda _, a, __: torch.argmax(a, 2), share=0.01),
    "embedding": Case(
        lambda m, i, _: functional.embedding(i, m.table) * 0.5,
        ((1, 7),), indices=frozenset({0}), **PLAIN,
    ),
    "gather": Case(
        lambda m, i, _: torch.index_select(m.table, 0, i) + 0.25,
        ((7,),), indices=frozenset({0}), **PLAIN,
    ),
    "bmm": Case(lambda _, a, b: torch.bmm(a, b), (SEQUENCE, (1, 16, 5)), **PLAIN),
    "bilinear": Case(
        lambda _, a, __: functional.interpolate(a, scale_factor=2, mode="bilinear")
    ),
    "bilinear aligned": Case(
        lambda _, a, __: functional.interpolate(
            a, size=(19, 19), mode="bilinear", align_corners=True
        ),
    ),
    "nearest": Case(lambda _, a, __: functional.interpolate(a, scale_factor=2, mode="nearest")),
    "turned functions": Case(lambda _, a, __: torch.sigmoid(torch.tanh(a).permute(0, 2, 3, 1))),
    "turned limits": Case(lambda _, a, __: torch.tanh(torch.relu(a).permute(0, 2, 3, 1))),
    "greatest and a number": Case(lambda _, a, __: functional.max_pool2d(a, 2) + 0.5),
}  # fmt: skip
WIDE = ("greater", "equal", "bmm", "bilinear", "turned functions", "embedding")
PARAMETERS = [*((name, 8) for name in CASES), *((name, 16) for name in WIDE)]


def converted_case(name: str, bits: int, converted: Build) -> tuple[Any, list[Any]]:
    case = CASES[name]
    torch.manual_seed(3)
    calls = [case.call() for _ in range(3)]
    config = get_symmetric_a16w8_quantization_config() if bits == 16 else None
    return converted(_Computes(case.compute, convolves=case.convolves), calls, U85, config), calls


def drawn(value: Value, generator: np.random.Generator) -> Array:
    if value.dtype is DType.INT32:
        return generator.integers(0, ROWS, value.shape).astype(np.int32)
    low, high = integer_range(value.dtype)
    return generator.integers(low, high + 1, value.shape).astype(value.dtype.numpy)


def require_stream_is_lowered(exported: Any, oracle: Oracle) -> None:
    """Hold each region's stream to the reference model of what was lowered, for all integers."""
    lowered = lower(read(exported), WINDOW_LIMITS)
    code = place(lowered, region_compiler(resolve(U85)), (), OFF, None).code
    assert len(code) == 1
    generator = np.random.default_rng(0)
    for groups, compiled in code.items():
        whole = extract(lowered.graph, groups)
        tensors: dict[object, int] = {}
        for value in (*whole.inputs, *whole.outputs):
            tensors.setdefault(value, len(tensors))
        inputs = [drawn(value, generator) for value in whole.inputs]
        values = {tensors[row]: x[None] for row, x in zip(whole.inputs, inputs, strict=True)}
        step_of(compiled, tensors).run(values, 1)
        for value, wanted in zip(whole.outputs, oracle(whole.graph, inputs), strict=True):
            np.testing.assert_array_equal(values[tensors[value]][0], wanted)


@pytest.mark.parametrize(("name", "bits"), PARAMETERS)
def test_the_stream_is_what_was_lowered(
    name: str, bits: int, converted: Build, tosa_oracle: Oracle
) -> None:
    require_stream_is_lowered(converted_case(name, bits, converted)[0], tosa_oracle)


@pytest.mark.parametrize(("name", "bits"), PARAMETERS)
def test_outputs_are_what_pytorch_gives(name: str, bits: int, converted: Build) -> None:
    """Within a step of 8 bits; of 16 within four, as sums of 48 bits are rescaled by 15 bits."""
    exported, calls = converted_case(name, bits, converted)
    artifact = compile_converted(exported, U85, prove="off")
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    scales = [step.scale for step in artifact.steps if isinstance(step, DequantizeStep)]
    for call in calls:
        wanted = exported.module(check_guards=False)(*call).detach().numpy()
        found: Any = artifact.run(*(value.numpy() for value in call))
        off = np.abs(found - wanted) / (scales[0] if scales else 1)
        assert np.mean(np.rint(off) > (1 if bits == 8 else 4)) <= CASES[name].share


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def test_a_wide_lstm_is_what_was_lowered(converted: Build, tosa_oracle: Oracle) -> None:
    calls = [(2 * torch.randn(10, 1, 8),) for _ in range(4)]
    config = get_symmetric_a16w8_quantization_config()
    with warnings.catch_warnings():
        # PyTorch's recurrent layers hold flat copies of their weights, which export sees first.
        warnings.filterwarnings("ignore", "The tensor attributes .* were assigned")
        exported = converted(_Recurrent(), calls, U85, config)
    require_stream_is_lowered(exported, tosa_oracle)


@pytest.mark.parametrize("axes", [(-1,), (1,), (1, 2)])
@pytest.mark.parametrize("reduce", [torch.sum, torch.mean])
def test_sums_of_16_bits_read_32(
    reduce: Callable[..., torch.Tensor], axes: tuple[int, ...], converted: Build
) -> None:
    """Others found zeros where the NPU reads 16 bits in a sum, so 32 are written first."""
    module = _Computes(lambda _, a, __: reduce(a, axes), convolves=False)
    calls = [(torch.randn(2, 6, 16),) for _ in range(2)]
    config = get_symmetric_a16w8_quantization_config()
    artifact = compile_converted(converted(module, calls, U85, config), U85)
    read: set[str] = set()
    for step in artifact.steps:
        if isinstance(step, NpuStep):
            assert isinstance(step.program, Program)
            read |= _read_by_sums(step.program)
    assert read <= {"B32"}
    assert read or axes == (1,), "windows sum up what is not along channels"


def _read_by_sums(program: Program) -> set[str]:
    """Return the precisions of what the sums over channels of a program read."""
    precision, found = "", set[str]()
    for instruction in program.instructions:
        if instruction.name == "SET_IFM_PRECISION":
            precision = str(getattr(instruction.values["activation_precision"], "name", ""))
        mode = instruction.values.get("pooling_mode")
        if getattr(mode, "name", "") == "REDUCE_SUM":
            found.add(precision)
    return found
