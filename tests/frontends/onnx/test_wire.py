"""Messages of ONNX's files: read as protobuf reads them, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx.fields import FIELDS, Field, Scalar
from mizzen.frontends.onnx.wire import MOST_FIELDS, parse

from .networks import FLOAT, helper, network, node, onnx, tensor

TYPES = {
    Scalar.INT: ("INT32", "INT64", "ENUM"),
    Scalar.UNSIGNED: ("UINT64",),
    Scalar.FLOAT: ("FLOAT",),
    Scalar.DOUBLE: ("DOUBLE",),
    Scalar.TEXT: ("STRING",),
}


def descriptor_of(name: str) -> Any:
    message: Any = onnx
    for part in name.split("."):
        message = getattr(message, part)
    return message.DESCRIPTOR


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_those_of_onnx(name: str) -> None:
    known = descriptor_of(name).fields_by_number
    for number, field in FIELDS[name].items():
        theirs = known[number]
        assert (theirs.name, theirs.is_repeated) == (field.name, field.many)
        if isinstance(field.kind, str):
            assert theirs.message_type.full_name == f"onnx.{field.kind}"
        elif field.kind in TYPES:
            allowed = {getattr(theirs, f"TYPE_{kind}") for kind in TYPES[field.kind]}
            assert theirs.type in allowed
        else:
            assert theirs.type in (theirs.TYPE_BYTES, theirs.TYPE_MESSAGE)


def same(ours: Any, theirs: Any, fields: Mapping[int, Field]) -> None:
    """Hold a message against protobuf's, field by field."""
    for field in fields.values():
        value = getattr(theirs, field.name)
        if isinstance(field.kind, str):
            inner = value if field.many else [value] if theirs.HasField(field.name) else []
            mine = ours.get(field.name, [])
            for one, other in zip(mine if field.many else [mine] * len(inner), inner, strict=True):
                same(one, other, FIELDS[field.kind])
        elif field.many:
            mine = [np.asarray(part).reshape(-1) for part in ours.get(field.name, [])]
            if field.kind in (Scalar.TEXT, Scalar.BYTES):
                assert len(ours.get(field.name, [])) == len(value)
            else:
                flat = np.concatenate([*mine, []]) if mine else np.zeros(0)
                np.testing.assert_array_equal(flat, np.array(value, np.float64))
        elif field.kind is not Scalar.BYTES:
            assert ours.get(field.name, value) == value


def test_a_network_is_read_as_protobuf_reads_it() -> None:
    model = network(
        [node("Conv", ["x", "w"], ["y"], pads=[1, 1], strides=[2], alpha=0.5, words=["a", "b"])],
        [tensor("x", [1, "n", 8])],
        [tensor("y", None)],
        {"w": np.arange(12, dtype=np.float32)},
    )
    model.graph.initializer.append(helper.make_tensor("v", 7, [3], [-1, 1 << 40, 300]))
    model.graph.initializer.append(helper.make_tensor("f", FLOAT, [2], [0.5, -2.0]))
    same(parse(model.SerializeToString(), "x"), model, FIELDS["ModelProto"])


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=300))
def test_packed_integers(values: list[int]) -> None:
    message = onnx.TensorProto(int64_data=values)
    parts = parse(message.SerializeToString(), "x", "TensorProto").get("int64_data", [])
    assert [int(v) for part in parts for v in np.atleast_1d(part)] == values


def test_numbers_one_by_one_and_in_runs_are_the_same() -> None:
    one_by_one = b"\x08\x03\x08\x04"
    in_a_run = b"\x0a\x02\x03\x04"
    for data in (one_by_one, in_a_run):
        parts = parse(data, "x", "TensorProto")["dims"]
        assert np.concatenate([np.atleast_1d(part) for part in parts]).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x3a\x05ab", "a field of 5 bytes at byte 2 ends outside"),
        (b"\x08", "a number at byte 1 has no end"),
        (b"\x08" + b"\xff" * 12, "a number at byte 11 has no end"),
        (b"\x0b", "a field at byte 1 is of no kind"),
        (b"\x12\x02\xff\xfe", "a text at byte 2 is no UTF-8"),
        (b"\x0d\0\0\0\0", "ir_version at byte 1 is written as something else"),
        (b"\x0a\x01\0", "ir_version at byte 2 is no number"),
        (b"\x3d\0\0", "a field at byte 1 is of no kind"),
    ],
)  # fmt: skip
def test_damage_is_said(data: bytes, said: str) -> None:
    with pytest.raises(MizzenError) as caught:
        parse(data, "x.onnx")
    assert caught.value.diagnostic.code == "E190"
    assert caught.value.diagnostic.message == f"x.onnx must be an ONNX file, and {said}"


def nested(depth: int) -> bytes:
    """Write graphs in one another."""
    data = b""
    for _ in range(depth):
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            size, length = len(data), b""
            while size > 127:
                length += bytes([size & 127 | 128])
                size >>= 7
            data = tag + length + bytes([size]) + data
    return b"\x3a" + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    result = b""
    while value > 127:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def test_nesting_is_bounded() -> None:
    with pytest.raises(MizzenError) as caught:
        parse(nested(5000), "x.onnx")
    assert caught.value.diagnostic.code == "E192"


def test_fields_are_counted() -> None:
    nodes = b"\x0a\x00" * (MOST_FIELDS + 1)
    with pytest.raises(MizzenError) as caught:
        parse(b"\x3a" + _varint(len(nodes)) + nodes, "x.onnx")
    assert caught.value.diagnostic.code == "E192"
