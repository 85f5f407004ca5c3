"""The table of kernels, compared with the runtime that has them and PyTorch that declares them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch

from mizzen.package.executorch.kernels import KERNELS, QUANTIZED, Default, Form, Kernel

from .executorch_oracle import kernels

ATEN_ROWS = {name: row for name, row in KERNELS.items() if not name.startswith(QUANTIZED)}


def schema_of(name: str, overload: str) -> Any:
    return torch._C._get_schema(name, overload)


def test_the_runtime_has_every_kernel() -> None:
    missing = {row.full_name for row in ATEN_ROWS.values()} - kernels()
    assert not missing


def declared(schema: Any) -> list[tuple[str, Form]]:
    """Return the arguments of a kernel in front of its outputs, and how they are given."""
    found: list[tuple[str, Form]] = []
    for row in schema.arguments:
        if row.is_out:
            continue
        text = str(row.type)
        form = Form.PLAIN
        if "float" in text:
            form = Form.REAL
        elif text == "List[Optional[Tensor]]":
            form = Form.SOME_TENSORS
        elif row.name == "dtype":
            form = Form.TYPE
        found.append((row.name, form))
    return found


@pytest.mark.parametrize("operator", ATEN_ROWS)
def test_arguments_are_those_of_the_schema(operator: str) -> None:
    kernel = ATEN_ROWS[operator]
    schema = schema_of(kernel.name, kernel.overload)
    assert [(row.name, row.form) for row in kernel.parameters] == declared(schema)
    outputs = [row for row in schema.arguments if row.is_out]
    assert kernel.gives_list == any("List" in str(row.type) for row in outputs)


@pytest.mark.parametrize("operator", ATEN_ROWS)
def test_an_operator_brings_what_its_kernel_takes(operator: str) -> None:
    name, _, overload = operator.partition(".")
    given = {row.name for row in schema_of(name, overload).arguments}
    kernel: Kernel = ATEN_ROWS[operator]
    assert {row.name for row in kernel.parameters if row.default is None} <= given
    left_out = {row.name for row in kernel.parameters if row.default is Default.SHAPE} - given
    assert left_out <= {"size"}
