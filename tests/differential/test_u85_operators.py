"""Operators on Ethos-U85 against the kernels, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.conformance.networks import Case
from mizzen.conformance.oracles import expected
from mizzen.conformance.suite import random_inputs

from .cases_u85 import cases_u85

Array = npt.NDArray[Any]
ACCELERATORS = (
    "ethos-u85-128",
    "ethos-u85-256",
    "ethos-u85-512",
    "ethos-u85-1024",
    "ethos-u85-2048",
)
CASES = cases_u85()


def telling(case: Case, values: Array) -> Array:
    """Values that the operator is defined for, and that make it give more than one result."""
    match case.operator:
        case "DIV":
            return values | 1
        case "EQUAL" | "NOT_EQUAL":
            return values & 3
        case _:
            return values


def check(case: Case, accelerator: str, optimise: str, count: int) -> None:
    data = case.build()
    artifact = mizzen.compile(data, accelerator, optimise=optimise, allow_inexact=True, prove="off")
    assert all(step.on_npu for step in artifact.steps), "part of the network is on the CPU"
    shapes = [(tensor.shape, tensor.dtype) for tensor in artifact.inputs]
    inputs = [telling(case, values) for values in random_inputs(shapes, count)]
    results = artifact.run(*inputs)
    outputs = results if isinstance(results, tuple) else (results,)
    oracle, _ = expected(case, data, inputs)
    for ours, theirs in zip(outputs, oracle, strict=True):
        assert len(np.unique(theirs)) > 1, "the oracle gives one value only: no test"
        np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator(case: Case) -> None:
    check(case, "ethos-u85-512", "Performance", 8)


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator_everywhere(case: Case, accelerator: str, optimise: str) -> None:
    check(case, accelerator, optimise, 200)
