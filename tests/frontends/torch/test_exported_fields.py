"""Each field of an exported program has an entry, and what must be absent is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from mizzen.flatbuffer.fields import Use
from mizzen.frontends.torch.exported_fields import FIELDS
from mizzen.frontends.torch.exported_rules import RULES, UnsafeProgramError

OTHER_FILES = ("AOTInductorModelPickleData", "ExternKernelNode", "ExternKernelNodes")
"""Of compiled programs, which are no graphs."""


def tables() -> Iterator[tuple[str, set[str]]]:
    """The tables of PyTorch's schema with their fields."""
    from torch._export.serde import schema

    for name, table in vars(schema).items():
        if isinstance(table, type) and dataclasses.is_dataclass(table) and name not in OTHER_FILES:
            yield name, {row.name for row in dataclasses.fields(table)}


def test_every_field_has_an_entry() -> None:
    assert {name: set(row.uses) for name, row in FIELDS.items()} == dict(tables())


def test_no_field_has_two() -> None:
    for row in FIELDS.values():
        names = [*f"{row.read} {row.carried} {row.silent}".split(), *row.refused]
        assert len(names) == len(set(names))


ELSEWHERE = {"use_pickle"}
"""Refused by what reads the tensors."""

WHOLE = {name for name, row in FIELDS.items() if set(row.uses.values()) == {Use.REFUSED}}
"""Tables that a refused field alone can have."""


def _refused() -> list[str]:
    rows = (field for name, row in FIELDS.items() if name not in WHOLE for field in row.refused)
    return sorted(set(rows) - ELSEWHERE)


@pytest.mark.parametrize("field", _refused())
def test_what_must_be_absent_is_refused(field: str) -> None:
    values: dict[str, Any] = {"layout": 1}
    with pytest.raises(UnsafeProgramError):
        RULES[field](values.get(field, {"arg": {"name": "x"}}))


def test_the_layout_of_all_elements_is_not() -> None:
    from torch._export.serde.schema import Layout

    assert RULES["layout"](int(Layout.Strided)) == Layout.Strided
