"""The table of operators: each row names a type that ONNX has, and a function that is there."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from itertools import chain

import pytest

from mizzen.frontends.onnx.operators import OPERATORS, TABLES, Missing, Operator

OLDEST_OPSET = 7
"""Of files that are read: what came before is told apart no more."""

ROWS = list(chain(*TABLES))
ONNX_ROWS = [row for row in ROWS if not row.domain]


def test_each_type_has_one_row() -> None:
    counts = Counter((row.domain, row.kind) for row in ROWS)
    assert [kind for kind, count in counts.items() if count > 1] == []
    assert len(OPERATORS) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.domain} {row.kind}".strip())
def test_a_row_names_a_function_or_a_reason(row: Operator) -> None:
    if isinstance(row.form, Missing):
        reason = row.form.reason.format(kind=row.kind)
        assert reason
        assert row.form.help
        return
    module, _, name = row.form.partition(":")
    function = getattr(import_module(f"mizzen.frontends.onnx.lowering.{module}"), name)
    assert callable(function)
    assert function.__doc__


@pytest.mark.parametrize("row", ONNX_ROWS, ids=lambda row: row.kind)
def test_a_type_is_onnxs_since_the_version_that_its_row_says(row: Operator) -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
    schemas = [schema for schema in onnx.defs.get_all_schemas_with_history()
               if schema.name == row.kind and schema.domain == row.domain]  # fmt: skip
    if not schemas:
        pytest.skip("a type of a newer onnx than is installed")
    oldest = min(schema.since_version for schema in schemas)
    assert max(oldest, OLDEST_OPSET) == max(row.since, OLDEST_OPSET)
