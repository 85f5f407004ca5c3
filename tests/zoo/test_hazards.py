"""The streams of the zoo's networks have no hazards, on any family."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")
pytest.importorskip("sklearn", reason="scikit-learn, whose digits are trained on, is not installed")

from mizzen.compiler.codegen import step_of
from mizzen.partition import extract

from .test_on_the_npu import QUICK, networks, regions


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
@pytest.mark.parametrize("name", networks(*QUICK))
def test_streams_have_no_hazards(name: str, accelerator: str) -> None:
    found = regions(name, accelerator)
    assert found.placed.code
    for groups, code in found.placed.code.items():
        whole = extract(found.lowered.graph, groups)
        tensors: dict[object, int] = {}
        for value in (*whole.inputs, *whole.outputs):
            tensors.setdefault(value, len(tensors))
        found_hazards = step_of(code, tensors).hazards.diagnostics
        assert [row.render() for row in found_hazards] == []
