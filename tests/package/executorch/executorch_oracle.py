"""ExecuTorch's own runtime and reader of programs, which judge ours."""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType
from typing import Any

import pytest


@cache
def imported(name: str) -> ModuleType:
    """Return a module of ExecuTorch, whose import warns of much; skip where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason="ExecuTorch is not installed")


def load(data: bytes) -> tuple[Any, Any]:
    """Return a program and its method, verified and loaded by the runtime."""
    runtime = imported("executorch.runtime")
    program = runtime.Runtime.get().load_program(
        data, verification=runtime.Verification.InternalConsistency
    )
    assert program.method_names == {"forward"}
    return program, program.load_method("forward")


def kernels() -> set[str]:
    """Return the names of the kernels that the runtime has."""
    return set(imported("executorch.runtime").Runtime.get().operator_registry.operator_names)


def plan_of(data: bytes) -> Any:
    """Return the execution plan of a program, as ExecuTorch's own reader has it."""
    return (
        imported("executorch.exir._serialize._program")
        .deserialize_pte_binary(data)
        .program.execution_plan[0]
    )
