"""The text of a graph: what it looks like, that it is read back, and what is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError, Origin
from mizzen.graph import (
    Blobs,
    DType,
    Graph,
    Quantization,
    RoundingMode,
    TensorType,
    parse,
    print_graph,
)
from mizzen.graph.reader import TOKEN
from mizzen.ops import Builder, verify

I8, I32 = DType.INT8, DType.INT32

EXAMPLE = """\
graph @main(%x: tensor<1x4xi8, scale 0.05 zp -128>, %"my input": tensor<i32>) {
  %2 = CONST {values = dense<int32[1] 1073741824>} : tensor<1xi32>
  %3 = CONST {values = dense<int8[1] 32>} : tensor<1xi8>
  %4 = CONST {values = dense<int8[1] -128>} : tensor<1xi8>
  %5 = CONST {values = dense<int32[1] 0>} : tensor<1xi32>
  %6 = RESCALE(%x, %2, %3, %4, %5) {input_unsigned = false, output_unsigned = false, \
per_channel = false, rounding_mode = RoundingMode.double, scale32 = true} : tensor<1x4xi32> \
group 3 from {kind = "conv", module = "features.0"}
  %weights = CONST {values = dense<int32[1,20] splat 7>} \
: tensor<1x20xi32, axis 0 scales [1e-05] zps [0]> group 3 \
from {kind = "conv", module = "features.0"}
  %8 = CONST {values = dense<int8[20] #dd27e439674a>} : tensor<20xi8> \
group 3 from {kind = "conv", module = "features.0"}
  %9, %10 = CUSTOM(%6, %weights, %8) {domain_name = "torch", implementation_attrs = bytes "AAE=", \
operator_name = "torch.\\"sort\\""} : tensor<2xi64>, tensor<f64> group 3 \
from {kind = "conv", module = "features.0"}
  VARIABLE {initial = none, name = "state", type = tensor<2xi8>}
  return %10, %x
}
"""


def example() -> Graph:
    graph = Graph()
    x = graph.add_input(TensorType((1, 4), I8, Quantization((0.05,), (-128,))), "x")
    graph.add_input(TensorType((), I32), "my input")
    b = Builder(graph, Origin(kind="conv", module="features.0"), 3)
    scaled = b(
        "RESCALE",
        x,
        b.constant([1 << 30], I32),
        b.constant([32], I8),
        b.constant([-128], I8),
        b.constant([0], I32),
        scale32=True,
        per_channel=False,
        rounding_mode=RoundingMode.DOUBLE_ROUND,
    )
    weights = b.constant(np.full((1, 20), 7), I32, Quantization((1e-5,), (0,), 0))
    weights.name = "weights"
    big = b.constant(np.arange(20), I8)
    types = [TensorType((2,), DType.INT64), TensorType((), DType.FP64)]
    _, last = b.custom(
        'torch."sort"',
        [scaled, weights, big],
        types,
        domain_name="torch",
        implementation_attrs=b"\0\1",
    )
    b.at(None, None).many("VARIABLE", name="state", type=TensorType((2,), I8))
    graph.set_outputs([last, x])
    return graph


def test_printed() -> None:
    assert print_graph(example()) == EXAMPLE


def test_blobs_are_appended() -> None:
    text = print_graph(example(), Blobs.APPENDED)
    assert text == EXAMPLE + 'blob #dd27e439674a "AAECAwQFBgcICQoLDA0ODxAREhM="\n'


def test_read_back() -> None:
    graph = parse(print_graph(example(), Blobs.APPENDED))
    assert print_graph(graph) == EXAMPLE
    assert verify(graph) == []
    first, second = example().sorted(), graph.sorted()
    for one, other in zip(first, second, strict=True):
        assert (one.kind, one.group, one.origin) == (other.kind, other.group, other.origin)
        assert [result.type for result in one.results] == [result.type for result in other.results]
        assert [each.name for each in one.results] == [each.name for each in other.results]
        assert repr(sorted(one.attributes.items())) == repr(sorted(other.attributes.items()))


def test_a_graph_of_nothing() -> None:
    assert print_graph(Graph("a b")) == 'graph @"a b"() {\n  return\n}\n'
    assert parse(print_graph(Graph("a b"))).name == "a b"


def test_graphs_within() -> None:
    body = Graph("body")
    x = body.add_input(TensorType((2,), I32), "x")
    body.set_outputs([Builder(body)("ADD", x, x)])
    graph = Graph()
    b = Builder(graph)
    condition = graph.add_input(TensorType((), DType.BOOL), "condition")
    x = graph.add_input(TensorType((2,), I32), "x")
    graph.set_outputs(b.many("COND_IF", condition, x, then_graph=body, else_graph=body))
    text = print_graph(graph)
    again = parse(text)
    assert print_graph(again) == text
    assert verify(again) == []
    assert text.count("graph @body(%x: tensor<2xi32>) {") == 2


NAMES = ["inf", "nan", "nan.x", "0", "1x2", "a b", '"', "é", "i8", "graph", "\n", "\\"]


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    graph = Graph(name)
    graph.set_outputs([graph.add_input(TensorType((1,), I8), name)])
    again = parse(print_graph(graph))
    assert (again.name, again.inputs[0].name) == (name, name)


def test_two_of_one_name() -> None:
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType((1,), I8), "x") for _ in range(2)])
    assert [value.name for value in parse(print_graph(graph)).outputs] == ["x", ""]


NUMPY_TYPES = sorted({dtype.numpy.name for dtype in DType})


@given(st.data())
def test_arrays(data: st.DataObject) -> None:
    """Every array comes back bit by bit; NaN as NaN."""
    dtype = np.dtype(data.draw(st.sampled_from(NUMPY_TYPES)))
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=3)))
    size = int(np.prod(shape, dtype=np.int64))
    raw = data.draw(st.binary(min_size=size * 8, max_size=size * 8))
    if dtype == np.bool_:
        array = (np.frombuffer(raw, np.int8)[:size] > 0).reshape(shape)
    else:
        array = np.frombuffer(raw, dtype)[:size].reshape(shape)
    graph = Graph()
    graph.add("CONST", (), [TensorType(shape, I8)], {"values": array})
    (operation,) = parse(print_graph(graph, Blobs.APPENDED))
    values = operation["values"]
    assert (values.shape, values.dtype) == (array.shape, array.dtype)
    assert np.array_equal(values, array, equal_nan=dtype.kind == "f")


def test_an_array_that_is_no_block_of_memory() -> None:
    graph = Graph()
    array = np.broadcast_to(np.arange(5, dtype=np.int32), (9, 5)).T
    graph.add("CONST", (), [TensorType((5, 9), I32)], {"values": array})
    (operation,) = parse(print_graph(graph, Blobs.APPENDED))
    assert np.array_equal(operation["values"], array)


REFUSALS = {
    "nothing": ("", '"graph" must come, and the end came', 1),
    "mark": ("graph @main() {\n  ;\n}", "no part of a graph's text: ';\\n}'", 2),
    "no end": ("graph @main() {\n", "an operation must come, and the end came", 2),
    "type": ("graph @main(%x: tensor<2xi7>) {return}", "no element type: 2xi7", 1),
    "operand": (
        "graph @main() {\n  %0 = ADD(%1, %1) : tensor<1xi8>\n  return\n}",
        "%1 must be given before it is taken",
        2,
    ),
    "twice": (
        "graph @main(%x: tensor<i8>, %x: tensor<i8>) {return}",
        "%x must be given once, and is given twice",
        1,
    ),
    "results": (
        "graph @main() {\n  %0, %1 = CONST : tensor<1xi8>\n  return\n}",
        "2 results must have as many types, not 1",
        2,
    ),
    "blob": (
        "graph @main() {\n  CONST {values = dense<int8[20] #0123456789ab>}\n  return\n}",
        "blob #0123456789ab must follow the graph, and does not",
        2,
    ),
    "elements": (
        "graph @main() {\n  CONST {values = dense<int8[2] 1, 2, 3>}\n  return\n}",
        "3 elements must have shape (2,)",
        2,
    ),
    "range": (
        "graph @main() {\n  CONST {values = dense<int8[1] 128>}\n  return\n}",
        "elements must be int8, and one is not",
        2,
    ),
    "huge": (
        "graph @main() {\n  CONST {values = dense<int8[99999999999] splat 0>}\n  return\n}",
        "an array must have less than 2 ** 31 elements, and has shape (99999999999,)",
        2,
    ),
    "origin": (
        "graph @main() {\n  CONST from {place = 1}\n  return\n}",
        "no parts of an origin: place",
        2,
    ),
    "value": (
        "graph @main() {\n  CONST {mode = ResizeMode.cubic}\n  return\n}",
        "the value of an attribute must come, and ResizeMode.cubic came",
        2,
    ),
    "more": ("graph @main() {return}\nreturn", '"blob" must come, and return came', 2),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    text, message, line = REFUSALS[name]
    with pytest.raises(MizzenError) as caught:
        parse(text, "a.graph")
    diagnostic = caught.value.diagnostic
    assert (diagnostic.message, diagnostic.origin) == (message, Origin(source=f"a.graph:{line}"))
    assert diagnostic.code in ("E810", "E811", "E812")


def code_of(text: str) -> str | None:
    try:
        parse(text)
    except MizzenError as error:
        return error.diagnostic.code
    return None


def test_damaged_text_is_refused_or_read() -> None:
    """Whatever is changed in a text, reading it ends with a graph or with an error of ours."""
    tokens = [match[0] for match in TOKEN.finditer(print_graph(example(), Blobs.APPENDED))]
    read = 0
    for seed in range(2000):
        rng = random.Random(seed)
        damaged = list(tokens)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(damaged))
            match rng.randrange(4):
                case 0:
                    del damaged[at]
                case 1:
                    damaged.insert(at, rng.choice(tokens))
                case 2:
                    damaged[at] = rng.choice(tokens)
                case _:
                    damaged[at] = damaged[at][: rng.randrange(len(damaged[at]) + 1)]
        code = code_of("".join(damaged))
        assert code in (None, "E810", "E811", "E812")
        read += code is None
    assert 0 < read < 2000


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        parse("graph @main() {CUSTOM {a = " + "[" * 10_000)
    assert caught.value.diagnostic.message == "at most 64 levels must be within each other"
