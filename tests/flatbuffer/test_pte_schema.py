"""The table of ExecuTorch's schema, compared with the schema that ExecuTorch installs."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from mizzen.flatbuffer.pte import SCHEMA, ScalarType
from mizzen.flatbuffer.schema import Field, Kind

SCALARS = {
    "bool": "bool",
    "byte": "i8",
    "ubyte": "u8",
    "int": "i32",
    "uint": "u32",
    "uint32": "u32",
    "long": "i64",
    "int64": "i64",
    "uint64": "u64",
    "double": "f64",
    "string": "str",
}
"""FlatBuffers' names of types to those of the table."""


def schema(name: str) -> str:
    """Return a schema's text without comments; skips the test without ExecuTorch."""
    found = find_spec("executorch")
    if found is None or found.submodule_search_locations is None:
        pytest.skip("ExecuTorch is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / "schema"
    return re.sub(r"//[^\n]*|\([^)]*\)", "", (folder / name).read_text())


def tables() -> dict[str, list[tuple[str, str]]]:
    """Return name and type of the fields of each table, enumerations as what they are kept in."""
    text = schema("program.fbs")
    kept = {name: SCALARS[held] for name, held in re.findall(r"enum (\w+) ?: ?(\w+)", text)}
    kept |= SCALARS | {"ScalarType": "i8"}
    kept |= {name: f"<{name}>" for name in re.findall(r"union (\w+)", text)}
    return {
        name: [
            (field, re.sub(r"\w+", lambda word: kept.get(word[0], word[0]), written))
            for field, written in re.findall(r"(\w+) *: *(\[?\w+\]?)", body)
        ]
        for name, body in re.findall(r"table (\w+) *\{([^}]*)\}", text)
    }


def written(field: Field) -> str:
    name = f"<{field.type_name}>" if field.kind is Kind.UNION else field.type_name
    return f"[{name}]" if field.is_vector else name


def test_every_table_is_there() -> None:
    assert set(SCHEMA.tables) == set(tables())


@pytest.mark.parametrize("table", SCHEMA.tables)
def test_fields_are_in_their_order_and_of_their_types(table: str) -> None:
    fields = [(field.name, written(field)) for field in SCHEMA.fields(table)]
    assert fields == tables()[table]
    assert [field.slot for field in SCHEMA.fields(table)][:1] in ([0], [])


@pytest.mark.parametrize("union", SCHEMA.unions)
def test_members_are_in_their_order(union: str) -> None:
    (body,) = re.findall(rf"union {union} *\{{([^}}]*)\}}", schema("program.fbs"))
    assert SCHEMA.unions[union] == ("NONE", *re.findall(r"\w+", body))


def test_types_have_their_numbers() -> None:
    rows = re.findall(r"(\w+) = (\d+)", schema("scalar_type.fbs"))
    names = {"BYTE": "UINT8", "CHAR": "INT8", "SHORT": "INT16", "INT": "INT32", "LONG": "INT64",
             "HALF": "FLOAT16", "FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}  # fmt: skip
    numbers = {names.get(name, name): int(number) for name, number in rows}
    assert {row.name: row.value for row in ScalarType}.items() <= numbers.items()
