"""Each field of each format has an entry, what is said to be read is read, and what must be default
is refused where it is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Member, Record, Schema, read, write
from mizzen.flatbuffer.fields import Use
from mizzen.flatbuffer.pte import SCHEMA as PTE
from mizzen.flatbuffer.schema import Field, Kind
from mizzen.flatbuffer.tflite import SCHEMA as TFLITE
from mizzen.flatbuffer.tosa import SCHEMA as TOSA
from mizzen.flatbuffer.tosa_tables import OPERATIONS
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite import read as read_model
from mizzen.frontends.tflite.lower import lower

FORMATS = {schema.name: schema for schema in (TFLITE, TOSA, PTE)}
SOURCES = Path(__file__).parents[2] / "src" / "mizzen"


def fields(schema: Schema) -> Iterator[tuple[str, Field]]:
    """Each field of a format with its table."""
    for table in schema.tables:
        for field in schema.fields(table):
            yield table, field


def refused() -> Iterator[tuple[str, str, str]]:
    for name, schema in FORMATS.items():
        for table, row in schema.uses.items():
            for field in row.refused:
                yield name, table, field


class TestEveryField:
    @pytest.mark.parametrize("name", FORMATS)
    def test_has_an_entry(self, name: str) -> None:
        schema = FORMATS[name]
        there = {(table, field.name) for table, field in fields(schema)}
        told = {(table, field) for table, row in schema.uses.items() for field in row.uses}
        assert there == told

    @pytest.mark.parametrize("name", FORMATS)
    def test_has_only_one(self, name: str) -> None:
        for row in FORMATS[name].uses.values():
            names = [*f"{row.read} {row.carried} {row.silent}".split(), *row.refused]
            assert len(names) == len(set(names))


class TestRefused:
    """Files are made from the schema: the way to the table, and the one field set."""

    @pytest.mark.parametrize(("name", "table", "field"), [*refused()])
    def test_set(self, name: str, table: str, field: str) -> None:
        schema = FORMATS[name]
        (row,) = (row for row in schema.fields(table) if row.name == field)
        record = _around(schema, table, {field: _set(schema, row)})
        with pytest.raises(MizzenError) as caught:
            read(write(record, schema), schema, "net")
        found = caught.value.diagnostic
        assert found.code == "E141"
        assert found.message.startswith("net must have ")
        assert found.message.endswith(", which Mizzen does not read")

    @pytest.mark.parametrize(("name", "table", "field"), [*refused()])
    def test_default(self, name: str, table: str, field: str) -> None:
        schema = FORMATS[name]
        if any(table in tables for tables in _only_in_refused(schema)):
            return  # the table as a whole must be absent
        (row,) = (row for row in schema.fields(table) if row.name == field)
        is_number = row.kind is Kind.SCALAR and not row.is_vector
        empty: Any = row.default if is_number else None
        record = _around(schema, table, {field: empty})
        assert read(write(record, schema), schema, "net")

    def test_in_full(self) -> None:
        tensors: list[Record] = [{}, {"external_buffer": 3}]
        record: Record = {"subgraphs": [{"tensors": tensors}]}
        with pytest.raises(MizzenError) as caught:
            read(write(record, TFLITE), TFLITE, "net.tflite")
        assert caught.value.diagnostic.render() == (
            "error[E141]: net.tflite must have Model.subgraphs[0].tensors[1].external_buffer "
            "absent or 0, not 3: as it is, its contents are in another file, which Mizzen does "
            "not read\n"
            "  help write the file without it"
        )


def _only_in_refused(schema: Schema) -> Iterator[set[str]]:
    """Tables that only a refused field can have."""
    whole = {
        table
        for table, row in schema.uses.items()
        if row.refused and set(row.uses.values()) == {Use.REFUSED}
    }
    yield whole - {schema.root}


def _around(schema: Schema, table: str, record: Record) -> Record:
    """A file's root table that has a table, by the shortest way there."""
    ways: dict[str, tuple[str, Field] | None] = {schema.root: None}
    for here in (queue := [schema.root]):
        for field in schema.fields(here):
            for there in _tables(schema, field):
                if there not in ways:
                    ways[there] = here, field
                    queue.append(there)
    while (way := ways[table]) is not None:
        above, field = way
        value: Any = Member(table, record) if field.kind is Kind.UNION else record
        record, table = {field.name: [value] if field.is_vector else value}, above
    return record


def _tables(schema: Schema, field: Field) -> tuple[str, ...]:
    match field.kind:
        case Kind.TABLE:
            return (field.type_name,)
        case Kind.UNION:
            return schema.unions[field.type_name][1:]
        case _:
            return ()


def _set(schema: Schema, field: Field) -> Any:
    """A value that is not the field's default."""
    match field.kind:
        case Kind.UNION:
            return Member(schema.unions[field.type_name][1], {})
        case Kind.STRING:
            return ["x"] if field.is_vector else "x"
        case Kind.TABLE:
            return [{}] if field.is_vector else {}
        case Kind.SCALAR if field.is_vector:
            return np.ones(1, field.dtype)
        case _:
            return not field.default if field.type_name == "bool" else field.default + 1


class TestRead:
    def test_sources_name_it(self) -> None:
        named = set(_texts())
        for schema in FORMATS.values():
            for table, row in schema.uses.items():
                if schema is TOSA and table in {name for name, _ in OPERATIONS.values()}:
                    continue  # `attributes_of` takes every attribute
                missing = set(row.read.split()) - named
                assert not missing, f"{schema.name} {table}"

    def test_lowering_reads_it(self) -> None:
        """Of each operator that is lowered, every option that is said to be read."""
        seen: dict[str, set[str]] = {}
        for case in cases():
            try:
                model = _recording(read_model(case.build(), case.name), seen)
                lower(model)
            except MizzenError:
                continue
        assert len(seen) > 20
        for table, names in seen.items():
            row = TFLITE.uses[table]
            assert names >= set(row.read.split()) - LATER.get(table, set()), table
            assert not names & set(row.refused) - {"weights_format"}, table


LATER = {
    "Conv2DOptions": {"quantized_bias_type"},
    "FullyConnectedOptions": {"quantized_bias_type"},
    "FakeQuantOptions": {"min", "max", "num_bits", "narrow_range"},
    "MirrorPadOptions": {"mode"},
    "ReducerOptions": {"keep_dims"},
    "VarHandleOptions": {"container", "shared_name"},
    "CallOnceOptions": {"init_subgraph_index"},
}
"""Options that are read of operators of 16 bits without a bias, where constants are folded, rules
are asked or variables are found."""


class _Recording(dict[str, Any]):
    """Options that note which of them are asked for."""

    def __init__(self, options: Record, seen: set[str]) -> None:
        super().__init__(options)
        self._seen = seen

    def __getitem__(self, key: str) -> Any:
        self._seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._seen.add(key)
        return super().get(key, default)


def _recording(model: Model, seen: dict[str, set[str]]) -> Model:
    records: list[Record] = model.record["subgraphs"][0]["operators"]
    operators = list(model.main.operators)
    for place, (row, record) in enumerate(zip(operators, records, strict=True)):
        member: Member | None = record["builtin_options"]
        if member is None or not member.fields or row.kind not in LOWERED:
            continue
        names = seen.setdefault(member.table, set())
        operators[place] = replace(row, options=_Recording(row.options, names))
    main = replace(model.main, operators=tuple(operators))
    return replace(model, subgraphs=(main, *model.subgraphs[1:]))


def _lowered() -> frozenset[str]:
    from mizzen.frontends.tflite.context import LOWERINGS

    return frozenset(LOWERINGS)


LOWERED = _lowered()


def _texts() -> Iterator[str]:
    """Texts in the sources, but those of the tables themselves."""
    for path in SOURCES.rglob("*.py"):
        if path.parent.name == "flatbuffer" and path.stem.endswith(("_tables", "_fields")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
