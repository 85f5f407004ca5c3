"""Operations have their operands and attributes as fields; nothing reads them by number or name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mizzen.graph import DType, Graph, Operation, TensorType
from mizzen.ops import DEFINITIONS, Builder
from mizzen.ops.data_layout import Concat
from mizzen.ops.elementwise import Add, Binary, Mul
from mizzen.ops.tensor import Conv2d, Weighted

SOURCE = Path(__file__).resolve().parents[2] / "src" / "mizzen"
GENERIC = ("graph", "ops")
"""What knows operations as data, whatever their kind."""


def test_fields_are_operands_and_attributes() -> None:
    b = Builder(graph := Graph())
    x, y = (graph.add_input(TensorType((2, 3), DType.INT32)) for _ in range(2))
    total = b("ADD", x, y).producer
    assert isinstance(total, Add)
    assert isinstance(total, Binary)
    assert not isinstance(total, Mul)
    assert (total.input1, total.input2) == (x, y)
    joined = b("CONCAT", x, y, x, axis=1).producer
    assert isinstance(joined, Concat)
    assert (joined.input1, joined.axis) == ((x, y, x), 1)


def test_fields_of_a_class_are_its_definition() -> None:
    assert issubclass(Conv2d, Weighted)
    assert DEFINITIONS["CONV2D"] is Conv2d.definition
    assert [each.name for each in Conv2d.definition.operands] == [
        "input", "weight", "bias", "input_zp", "weight_zp",
    ]  # fmt: skip
    assert Conv2d.weight.index == 1
    assert Conv2d.stride.length == 2


@pytest.mark.parametrize("kind", sorted(DEFINITIONS))
def test_every_kind_has_a_class_whose_operands_are_in_their_places(kind: str) -> None:
    assert Operation.of_kind[kind].__dict__["definition"] is DEFINITIONS[kind]
    operands = DEFINITIONS[kind].operands
    assert [operand.index for operand in operands] == list(range(len(operands)))


def bare(tree: ast.Module) -> Iterator[int]:
    """Find ``x.operands[3]``, and ``operation["stride"]``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            read, key = node.value, node.slice.value
            if isinstance(read, ast.Attribute) and read.attr == "operands" and type(key) is int:
                yield node.lineno
            if isinstance(read, ast.Name) and read.id == "operation" and isinstance(key, str):
                yield node.lineno


def test_no_operand_is_read_by_number_and_no_attribute_by_name() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in GENERIC
        for line in bare(ast.parse(path.read_text()))
    ]
    assert found == []
