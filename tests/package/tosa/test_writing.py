"""Graphs written as TOSA files: read again they are the same, and Arm's own tools agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError, Origin
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tosa import SCHEMA, decode, encode
from mizzen.flatbuffer.tosa import TosaType as FileType
from mizzen.frontends.tosa import read
from mizzen.graph import (
    INTEGER_BITS,
    DType,
    Graph,
    NanMode,
    Operation,
    ResizeMode,
    RoundingMode,
    TensorType,
    Value,
)
from mizzen.ops import DEFINITIONS, Attribute
from mizzen.package.tosa import write

IN_FILES = [dtype for dtype in DType if dtype.name in FileType.__members__]
TENSORS = [dtype for dtype in IN_FILES if dtype is not DType.SHAPE]
ENUMERATIONS: dict[str, list[Any]] = {
    each.__name__: list(each) for each in (NanMode, ResizeMode, RoundingMode)
}
LIMITS = [DType.INT8, DType.INT16, DType.FP16, DType.BF16, DType.FP32]


def numbers(dtype: DType, size: int, seed: int) -> Any:
    """Return elements that the type holds exactly."""
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return random.integers(0, 2, size).astype(bool)
    if dtype.is_float:
        return (random.integers(-128, 128, size) / 4).astype(dtype.numpy)
    half = 1 << (INTEGER_BITS.get(dtype, 64) - 1)
    return random.integers(-half, half - 1, size, dtype=np.int64, endpoint=True).astype(dtype.numpy)


@given(st.sampled_from(IN_FILES), st.integers(0, 9), st.integers(0, 1 << 32))
def test_elements_survive(dtype: DType, size: int, seed: int) -> None:
    values, type = numbers(dtype, size, seed), FileType[dtype.name]
    assert np.array_equal(decode(encode(values, type), type, size), values)


def test_elements_as_files_have_them() -> None:
    assert encode(np.array([-8, 7, 3]), FileType.INT4).tolist() == [0x78, 0x03]
    assert encode(np.array([-2]), FileType.INT48).tolist() == [0xFE] + [0xFF] * 5
    assert encode(np.array([1.0]), FileType.BF16).tolist() == [0x80, 0x3F]
    assert encode(np.array([True, False]), FileType.BOOL).tolist() == [1, 0]
    assert encode(np.array([3]), FileType.SHAPE).tolist() == [3] + [0] * 7


def attribute(draw: st.DrawFn, attribute: Attribute[Any]) -> Any:
    types = attribute.type if isinstance(attribute.type, tuple) else (attribute.type,)
    match types[0].__name__:
        case "tuple":
            size = attribute.length or 4
            return tuple(draw(st.lists(st.integers(0, 1 << 30), min_size=size, max_size=size)))
        case "int":
            return draw(st.integers(-100, 100))
        case "bool":
            return draw(st.booleans())
        case "str":
            return draw(st.text(st.characters(codec="ascii", min_codepoint=32), max_size=9))
        case "bytes":
            return draw(st.binary(max_size=9))
        case "DType":
            return draw(st.sampled_from(TENSORS))
        case "Graph":
            return body(draw(st.sampled_from(TENSORS)))
        case _:
            return draw(st.sampled_from(ENUMERATIONS[types[0].__name__]))


def body(dtype: DType) -> Graph:
    graph = Graph("body")
    value = graph.add_input(TensorType((2,), dtype), "x")
    graph.set_outputs([graph.add("IDENTITY", [value], [value.type]).result])
    return graph


@st.composite
def graphs(draw: st.DrawFn, kind: str) -> Graph:
    """One operation of a kind, on inputs and constants of any types: a file can hold it all."""
    graph, definition = Graph("any"), DEFINITIONS[kind]
    shape = st.lists(st.integers(1, 3), max_size=4).map(tuple)
    operands: list[Value] = []
    for operand in definition.operands:
        dtype = draw(st.sampled_from(LIMITS if kind == "CLAMP" else IN_FILES))
        if dtype is DType.SHAPE or operand.constant:
            operands.append(graph.constant(numbers(dtype, 3, draw(st.integers(0, 99))), dtype))
        else:
            operands.append(graph.add_input(TensorType(draw(shape), dtype)))
    attributes = {row.name: attribute(draw, row) for row in definition.attributes}
    types = [
        operands[0].type
        if kind == "CLAMP"
        else TensorType(draw(shape), draw(st.sampled_from(TENSORS)))
        for _ in definition.results or (0, 0)
    ]
    graph.set_outputs(graph.add(kind, operands, types, attributes).results)
    return graph


ORDINARY = sorted(
    DEFINITIONS.keys() - {"CONST", "CONST_SHAPE", "VARIABLE", "VARIABLE_READ", "VARIABLE_WRITE"}
)


@pytest.mark.parametrize("kind", ORDINARY)
def test_an_operation_is_read_as_it_was_written(kind: str) -> None:
    @settings(max_examples=12)
    @given(graphs(kind))
    def same(graph: Graph) -> None:
        assert described(read(write(graph), "x.tosa")) == described(graph)

    same()


def described(graph: Graph) -> Any:
    """Return all that a file keeps of a graph, with values numbered as they come."""
    order = graph.sorted()
    values = [*graph.inputs, *(result for operation in order for result in operation.results)]
    place = {value: index for index, value in enumerate(values)}
    return (
        [(value.shape, value.dtype) for value in values],
        [place[value] for value in graph.outputs],
        len(graph.inputs),
        [
            (
                operation.kind,
                [place[value] for value in operation.operands],
                sorted((name, plain(value)) for name, value in operation.attributes.items()),
            )
            for operation in order
        ],
    )


def plain(value: Any) -> Any:
    match value:
        case Graph():
            return described(value)
        case np.ndarray():
            return value.dtype.str, value.tolist()
        case NanMode() | ResizeMode() | RoundingMode() | DType():
            return value.name
        case _:
            return value


def stateful() -> Graph:
    graph, type = Graph(), TensorType((1, 3), DType.INT32)
    graph.add("VARIABLE", (), (), {"name": "s", "type": type, "initial": np.ones((1, 3), np.int32)})
    step = graph.add_input(type, "step")
    before = graph.add("VARIABLE_READ", (), [type], {"name": "s", "type": type}).result
    after = graph.add("ADD", [before, step], [type]).result
    graph.add("VARIABLE_WRITE", [after], [], {"name": "s"})
    graph.set_outputs([after])
    return graph


def test_variables_are_read_as_they_were_written() -> None:
    again = read(write(stateful()), "x.tosa")
    assert [operation.kind for operation in again] == [
        "VARIABLE",
        "VARIABLE_READ",
        "ADD",
        "VARIABLE_WRITE",
    ]
    first, access = list(again)[:2]
    assert first["name"] == access["name"] == "s"
    assert first["initial"].tolist() == [[1, 1, 1]]
    assert access["type"] == TensorType((1, 3), DType.INT32)


def test_operators_tell_their_index_and_origin() -> None:
    graph = Graph()
    value = graph.add_input(TensorType((1,), DType.INT32), "x")
    for name in ("first", "second"):
        origin = Origin(module=name)
        value = graph.add("IDENTITY", [value], [value.type], origin=origin).result
    graph.set_outputs([value])
    (region,) = read_file(write(graph), SCHEMA, "x")["regions"]
    (block,) = region["blocks"]
    texts = [operator["location"]["text"] for operator in block["operators"]]
    assert texts == ["0 first", "1 second"]


def test_names_of_inputs_and_outputs_are_kept_and_all_are_unique() -> None:
    graph = Graph()
    value = graph.add_input(TensorType((1,), DType.INT32), "x")
    hidden = chain(graph, value, "y")
    graph.set_outputs([chain(graph, hidden, "y"), chain(graph, hidden, "")])
    (region,) = read_file(write(graph), SCHEMA, "x")["regions"]
    (block,) = region["blocks"]
    assert (block["inputs"], block["outputs"]) == (["x"], ["y", "value"])
    names = [tensor["name"] for tensor in block["tensors"]]
    assert len(set(names)) == len(names) == 4


def chain(graph: Graph, value: Value, name: str) -> Value:
    operation: Operation = graph.add("IDENTITY", [value], [value.type])
    operation.result.name = name
    return operation.result


def test_types_that_tosa_does_not_have_are_refused() -> None:
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType((1,), DType.INT64), "x")])
    with pytest.raises(MizzenError) as caught:
        write(graph)
    assert str(caught.value) == (
        "error[E150]: x must have an element type of TOSA 1.0 to be in its file, and has i64\n"
        "  rule TOSA 1.0, 1.10 Number formats"
    )
