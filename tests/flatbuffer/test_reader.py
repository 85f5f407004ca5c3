from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Member, Record, Schema, read, write
from mizzen.flatbuffer.schema import Field, Kind
from mizzen.flatbuffer.tflite import SCHEMA

TOY = Schema(
    "toy",
    "Node",
    b"TOY1",
    {
        "Node": "name:str leaves:[Leaf] names:[str] flags:[bool] data:[u8] one:Leaf kind:<Kind>",
        "Leaf": "number:i16=-7 _:i8 ratio:f32=0.5 wide:u64 on:bool=1",
        "Other": "numbers:[i64]",
    },
    {"Kind": ("NONE", "Leaf", "Other")},
)


INTEGERS = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i64": np.int64, "u64": np.uint64}


def scalars(field: Field) -> st.SearchStrategy[Any]:
    match field.type_name:
        case "bool":
            return st.booleans()
        case "f32":
            return st.floats(width=32, allow_nan=False)
        case name:
            info = np.iinfo(INTEGERS[name])
            return st.integers(info.min, info.max)


def values(schema: Schema, field: Field) -> st.SearchStrategy[Any]:
    match field.kind:
        case Kind.SCALAR if field.is_vector:
            return st.lists(scalars(field), max_size=4)
        case Kind.SCALAR:
            return scalars(field)
        case Kind.STRING:
            one: st.SearchStrategy[Any] = st.text(max_size=5)
        case Kind.TABLE:
            one = records(schema, field.type_name)
        case Kind.UNION:
            members = schema.unions[field.type_name][1:]
            return st.one_of(
                [records(schema, name).map(lambda r, n=name: Member(n, r)) for name in members]
            )
    return st.lists(one, max_size=3) if field.is_vector else one


def records(schema: Schema, table: str) -> st.SearchStrategy[Record]:
    """Records of a table, from its row: any of its fields, with any values."""
    fields = schema.fields(table)
    return st.fixed_dictionaries(
        {}, optional={field.name: values(schema, field) for field in fields}
    )


def agrees(schema: Schema, table: str, read_back: Record, written: Record) -> bool:
    for field in schema.fields(table):
        if field.name not in written:
            default = field.default if field.kind is Kind.SCALAR and not field.is_vector else None
            if read_back[field.name] != default:
                return False
        elif not same(schema, field, read_back[field.name], written[field.name]):
            return False
    return True


def same(schema: Schema, field: Field, read_back: Any, written: Any) -> bool:
    if isinstance(written, Member):
        return read_back.table == written.table and agrees(
            schema, written.table, read_back.fields, written.fields
        )
    if field.kind is Kind.TABLE:
        pairs = zip(read_back, written, strict=True) if field.is_vector else [(read_back, written)]
        return all(agrees(schema, field.type_name, back, record) for back, record in pairs)
    if isinstance(read_back, np.ndarray):
        return read_back.dtype == field.dtype and read_back.tolist() == written
    return read_back == written


@given(records(TOY, "Node"))
def test_what_is_written_is_read_back(record: Record) -> None:
    assert agrees(TOY, "Node", read(write(record, TOY), TOY, "file"), record)


def test_vectors_of_numbers_are_views_of_the_file() -> None:
    data = write({"data": np.arange(100, dtype=np.uint8)}, TOY)
    contents = read(data, TOY, "file")["data"]
    assert np.shares_memory(contents, np.frombuffer(data, np.uint8))


def test_byte_vectors_are_aligned_for_use_in_place() -> None:
    for size in range(1, 40):
        data = write({"name": "x" * size, "data": np.full(size, 255, np.uint8)}, TOY)
        assert data.index(b"\xff" * size) % 16 == 0


def test_a_field_that_the_schema_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^toy Node has no field \['wings'\]$"):
        write({"wings": 2}, TOY)


@pytest.mark.parametrize("data", [b"", b"short", b"\x08\0\0\0TFL2\0\0\0\0"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(MizzenError) as caught:
        read(data, SCHEMA, "net.tflite")
    came = data[4:8].decode()
    assert str(caught.value) == (
        "error[E101]: net.tflite must be a TFLite file: "
        f"bytes 4..8 must be 'TFL3', not {came!r}\n"
        "  help give a quantised .tflite file, or an artifact that `mizzen compile` wrote"
    )


def test_a_truncated_file_names_table_and_byte() -> None:
    data = write({"name": "a name"}, TOY)
    place = data.index(b"a name")
    with pytest.raises(MizzenError) as caught:
        read(data[: place + 3], TOY, "toy.bin")
    assert str(caught.value) == (
        "error[E102]: toy.bin must be a whole toy file, and is damaged at byte "
        f"{place}, Node.name: 6 bytes are needed there and the file has {place + 3}\n"
        "  help get the file again; it is truncated or its bytes have changed"
    )


def test_an_unknown_member_of_a_union_is_refused() -> None:
    newer = Schema("toy", "Node", b"TOY1", TOY.tables, {"Kind": ("NONE", "Other", "New", "Leaf")})
    data = write({"kind": Member("Leaf", {"number": 1})}, newer)
    with pytest.raises(MizzenError, match=r"at byte \d+, Node\.kind: Kind has no member 3\n"):
        read(data, TOY, "file")


def shared_vector(count: int, element: bytes) -> bytes:
    """A file whose `names` or `leaves` are `count` references to one and the same element."""
    vtable = struct.pack("<HHHHH", 10, 8, 0, 0, 4)  # slot 2: names
    root = 8 + len(vtable) + 2
    head = struct.pack("<I", root) + b"TOY1" + vtable + b"\0\0"
    table = struct.pack("<iI", root - 8, 4)
    start = len(head) + len(table) + 4
    target = start + 4 * count
    offsets = b"".join(struct.pack("<I", target - (start + 4 * i)) for i in range(count))
    return head + table + struct.pack("<I", count) + offsets + element


@pytest.mark.parametrize("length", [0, 20_000])
def test_references_to_the_same_bytes_cannot_ask_for_much_memory(length: int) -> None:
    element = struct.pack("<I", length) + b"x" * length + b"\0"
    few = read(shared_vector(3, element), TOY, "file")["names"]
    assert few == ["x" * length] * 3 if length == 0 else len(few) == 3
    data = shared_vector(20_000, element)
    tracemalloc.start()
    with pytest.raises(MizzenError, match="more in the file than it has room for"):
        read(data, TOY, "file")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * len(data)
