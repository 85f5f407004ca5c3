"""A network around an operator that is under test, and what its compilation says."""

from __future__ import annotations

from typing import Any

import pytest

import mizzen
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report import CompileReport

MAP = (1, 4, 4, 8)


def report_of(artifact: mizzen.Artifact) -> CompileReport:
    assert artifact.report is not None
    return artifact.report


def regions(artifact: mizzen.Artifact) -> list[tuple[str, str]]:
    return [(row.kind, row.device.value) for row in report_of(artifact).placements]


class Net(NetworkBuilder):
    """A network around an operator that is under test: ADD, the operator, ADD."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.map("first")
        self.second = self.map("second")
        self.sum = self.map("sum")
        self.operator("ADD", [self.first, self.second], [self.sum], ("AddOptions", {}))

    def map(self, name: str, dtype: str = "int8", shape: tuple[int, ...] = MAP) -> int:
        return self.tensor(name, shape, dtype, None if dtype in ("bool", "float32") else 0.1)

    def twice(self, index: int) -> int:
        """Add a map to itself."""
        total = self.map(f"twice-{index}")
        self.operator("ADD", [index, index], [total], ("AddOptions", {}))
        return total


def error(model: Any, *positional: Any, **keywords: Any) -> str:
    with pytest.raises(mizzen.MizzenError) as caught:
        mizzen.compile(model, *positional, **keywords)
    return str(caught.value)
