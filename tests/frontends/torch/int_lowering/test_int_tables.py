"""Functions of 16-bit numbers: for every integer of the input next to PyTorch's result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import Tensor, nn

from mizzen.frontends.quantized.tables import LEAST, STEP, Tables, tables_of
from mizzen.frontends.quantized.terms import Target
from mizzen.graph import DType, Quantization
from mizzen.torch import compile_converted

from .exactness import Computes, lowered

functional = nn.functional

BOUND = 2
"""Steps: a line may leave its function by one, an entry, the line and PyTorch's result are each
rounded by half of one."""

FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "rsqrt": (torch.rsqrt, 0.05, 4),
    "reciprocal": (torch.reciprocal, 0.05, 4),
    "reciprocal of both signs": (lambda x: torch.reciprocal(x + 0.01 * x.sign()), -4, 4),
    "sqrt": (torch.sqrt, 0, 30),
    "log": (torch.log, 0.001, 30),
    "log1p": (torch.log1p, 0, 30),
    "exp of what is below zero": (torch.exp, -30, 0),
    "exp": (torch.exp, -8, 8),
    "pow": (lambda x: x**-1.5, 0.05, 4),
    "gelu": (functional.gelu, -30, 30),
    "silu": (functional.silu, -30, 30),
    "tanh": (torch.tanh, -30, 30),
    "steep tanh": (torch.tanh, -300, 300),
    "sigmoid": (torch.sigmoid, -30, 30),
    "erf": (torch.erf, -30, 30),
    "sin": (torch.sin, -4, 4),
    "sin of several turns": (torch.sin, -30, 30),
    "cos": (torch.cos, -10, 10),
    "logit": (torch.logit, 0.001, 0.999),
    "asin": (torch.asin, -0.99, 0.99),
    "hardsigmoid": (functional.hardsigmoid, -30, 30),
    "hardshrink": (functional.hardshrink, -4, 4),
    "sign": (torch.sign, -4, 4),
}


def every_integer(low: float, high: float) -> Tensor:
    """Return a number for each of the 16-bit integers that calibration has a range for."""
    return torch.linspace(low, high, 1 << 16)[None]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_16_bits_are_next_to_pytorchs(name: str) -> None:
    """A single table is off by up to 57,000 steps next to a pole, and by 1,000 next to a bend."""
    function, low, high = FUNCTIONS[name]
    assert lowered(function, every_integer(low, high), bits=16).steps_off() <= BOUND


def curved(function: Callable[[np.ndarray], np.ndarray]) -> Tables:
    """Return the tables of a function of integers, in steps."""
    target = Target(DType.INT16, Quantization((1.0,), (0,)), LEAST + 1, -LEAST - 1)
    return tables_of(lambda integers: function(integers.astype(np.float64)), target)


def test_a_gentle_curve_takes_one_table() -> None:
    """With an entry for every 128th integer."""
    (span,) = curved(lambda x: x * x / (1 << 16)).spans
    assert (span.spacing, span.middle) == (STEP, 0)
    assert span.entries.tolist() == [round((n * STEP + LEAST) ** 2 / (1 << 16)) for n in range(513)]


def test_a_bend_takes_a_table_of_its_own_around_it() -> None:
    """Elsewhere the second table is constant."""
    bend, height = 1000, 30000
    _, span = curved(lambda x: np.where(x < bend, 0, height)).spans
    assert span.first <= bend - 1
    assert bend <= span.last
    assert span.spacing == 1


def test_a_pole_takes_two_tables_of_half_its_height() -> None:
    """From one integer to the next an entry may change by 32767 only."""
    tables = curved(lambda x: np.where(x < 0, -32767, 32767))
    steepest = max(int(np.abs(np.diff(span.entries)).max()) for span in tables.spans)
    assert len(tables.spans) == 3
    assert steepest <= 32767


def test_a_pole_over_all_integers_takes_three_tables_of_a_third_of_its_height() -> None:
    tables = curved(lambda x: np.where(x < 0, -32768, 32767))
    steepest = max(int(np.abs(np.diff(span.entries)).max()) for span in tables.spans)
    assert len(tables.spans) == 4
    assert steepest <= 32767


def test_a_function_of_many_jumps_is_pytorchs() -> None:
    """It would be off by a whole jump next to those that have no table."""
    found = lowered(torch.floor, every_integer(-30, 30), bits=16)
    (reason,) = set(found.on_cpu.values())
    assert reason == (
        "it takes 60 tables of 16 bits next to its bends and jumps, and 24 are the most"
    )
    assert found.steps_off() == 0


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("name", ["reciprocal", "sin of several turns"])
def test_sums_of_tables_are_on_the_npu(name: str, accelerator: str) -> None:
    """Of 16 bits and of 32: the stream gives what the graph says."""
    function, low, high = FUNCTIONS[name]
    found = lowered(Computes(function), every_integer(low, high), bits=16)
    artifact = compile_converted(found.exported, accelerator)
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    assert artifact.report.proof.differing == ()
    assert artifact.report.proof.equal > 0
