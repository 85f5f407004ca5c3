"""The registry of PyTorch's operators: whole, and with nothing behind its back."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch

import mizzen.frontends.torch as frontend
from mizzen.frontends.torch.call import lowering_of
from mizzen.frontends.torch.operators import (
    OPERATORS,
    TABLES,
    Missing,
    Operator,
    Role,
    functional_name,
)

ROWS = [row for table in TABLES for row in table]
LOWERED = sorted({form for row in ROWS for form in (row.integers, row.floats)
                  if isinstance(form, str)})  # fmt: skip
DECOMPOSED = sorted({row.decomposition for row in ROWS if row.decomposition})


def overload(name: str) -> Any:
    library, operator, which = name.split(".")
    return getattr(getattr(getattr(torch.ops, library), operator), which)


def core() -> list[str]:
    """Every overload that ATen counts to its core."""
    found: list[str] = []
    names: list[str] = torch._C._dispatch_get_all_op_names()
    for name in names:
        if name.startswith("aten::"):
            operator, _, which = name.removeprefix("aten::").partition(".")
            full = f"aten.{operator}.{which or 'default'}"
            if torch.Tag.core in getattr(overload(full), "tags", ()):
                found.append(full)
    return found


def test_every_core_operator_has_a_row() -> None:
    names = core()
    assert len(names) > 150
    assert not set(names) - set(OPERATORS)


def test_every_overload_is_one_of_pytorch_and_stands_in_one_row() -> None:
    import_module("mizzen.quantize.recurrence")
    names = [name for row in ROWS for name in row.overloads]
    assert len(names) == len(set(names))
    for name in OPERATORS:
        assert overload(name)._schema is not None


@pytest.mark.parametrize("form", LOWERED)
def test_every_lowering_is_a_function_of_one_node(form: str) -> None:
    function = lowering_of(form, None)
    (call,) = inspect.signature(function).parameters.values()
    kinds = {"int": "IntCall", "fp_": "FpCall"}
    assert str(call.annotation) == kinds.get(form[:3], "Call[Term]")
    assert function.__doc__


@pytest.mark.parametrize("name", DECOMPOSED)
def test_every_decomposition_is_a_rule(name: str) -> None:
    module, _, function = name.partition(":")
    rule = getattr(import_module(f"mizzen.quantize.decompose.{module}"), function)
    assert list(inspect.signature(rule).parameters) == ["rewriter", "node"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.overloads[0])
def test_what_a_row_lacks_it_says_why(row: Operator) -> None:
    for form in (row.integers, row.floats):
        assert isinstance(form, str) or len(form.reason) > 20
    if row.role in (Role.WEIGHTED, Role.FIXED):
        assert row.channel_axis is not None or row.range is not None


WHOLE = ("movement:clone", "int_lowering.int_conversion:to", "choice:any_", "choice:all_")
"""What gives whole numbers or truths, besides operators on bits."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.overloads[0])
def test_what_is_lowered_to_integers_is_quantised_too(row: Operator) -> None:
    """What gives no numbers has no role, nor what the quantizer itself makes."""
    if not isinstance(row.integers, str) or row.role is not None:
        return
    gives_numbers = row.integers not in WHOLE and not row.integers.startswith(
        "int_lowering.int_bits"
    )
    assert not gives_numbers or row.overloads[0].startswith("mizzen.")


def test_no_lowering_is_forgotten() -> None:
    """Each function of one node alone is some operator's, or a part of one that is."""
    folder = Path(frontend.__file__).parent
    for path in [*folder.glob("*_lowering/*.py"), folder / "movement.py", folder / "choice.py"]:
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        module = import_module(f"{frontend.__name__}.{name}")
        for key, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__ or key.startswith("_"):
                continue
            parameters = [str(row.annotation) for row in
                          inspect.signature(function).parameters.values()]  # fmt: skip
            if parameters in (["IntCall"], ["FpCall"], ["Call[Term]"]):
                assert f"{name}:{key}" in LOWERED, f"{name}:{key}"


@pytest.mark.parametrize(
    ("name", "functional"),
    [
        ("aten.relu_.default", "aten.relu.default"),
        ("aten.view_copy.default", "aten.view.default"),
        ("aten._to_copy.default", "aten._to_copy.default"),
        ("aten.lift_fresh_copy.default", "aten.lift_fresh_copy.default"),
        ("aten.__and__.Tensor", "aten.__and__.Tensor"),
        ("quantized_decomposed.quantize_per_tensor.default",) * 2,
    ],
)
def test_functional_names(name: str, functional: str) -> None:
    assert functional_name(name) == functional


def test_a_reason_names_the_operator() -> None:
    sort = OPERATORS["aten.sort.default"].integers
    assert isinstance(sort, Missing)
    assert sort.reason.format(kind="aten.sort") == (
        "there is no TOSA form of aten.sort here: TOSA sorts nothing"
    )
