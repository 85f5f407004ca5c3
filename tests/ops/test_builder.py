"""What the builder infers, refuses and shares."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.graph import (
    DType,
    Graph,
    NanMode,
    Quantization,
    ResizeMode,
    RoundingMode,
    TensorType,
    Value,
)
from mizzen.ops import Builder

I8, I16, I32, I48 = DType.INT8, DType.INT16, DType.INT32, DType.INT48
BOOL, F16, F32 = DType.BOOL, DType.FP16, DType.FP32

Shape = tuple[int, ...]


class Bench:
    """A graph, a builder on it, and inputs by type."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.b = Builder(self.graph)

    def input(self, dtype: DType, *shape: int) -> Value:
        return self.graph.add_input(TensorType(shape, dtype))

    def zero(self, dtype: DType) -> Value:
        return self.b.constant([0], dtype)

    def conv(self, kind: str, data: Shape, weight: Shape, bias: int, **attributes: Any) -> Value:
        return self.b(
            kind,
            self.input(I8, *data),
            self.input(I8, *weight),
            self.input(I32, bias),
            self.zero(I8),
            self.zero(I8),
            **attributes,
        )

    def resize(self, data: Shape, scale: Shape, offset: Shape, border: Shape, **more: Any) -> Value:
        shapes = [self.b.shape(numbers) for numbers in (scale, offset, border)]
        return self.b("RESIZE", self.input(I8, *data), *shapes, **more)


@pytest.fixture
def bench() -> Bench:
    return Bench()


# Expected shapes are worked out by hand from the formulas in TOSA 1.0, 2.3 to 2.13.
RESULTS: dict[str, tuple[Callable[[Bench], Value], Shape, DType]] = {
    "argmax": (lambda t: t.b("ARGMAX", t.input(I8, 2, 3, 4), axis=1), (2, 4), I32),
    "argmax of a vector": (lambda t: t.b("ARGMAX", t.input(I8, 3), axis=0), (), I32),
    "conv2d": (
        lambda t: t.conv("CONV2D", (1, 7, 8, 3), (5, 3, 2, 3), 5, pad=(1, 1, 0, 0), stride=(2, 3)),
        (1, 4, 3, 5),
        I32,
    ),
    "conv2d dilated": (
        lambda t: t.conv(
            "CONV2D", (1, 9, 9, 3), (5, 3, 3, 3), 1, pad=(0,) * 4, stride=(1, 1), dilation=(2, 3)
        ),
        (1, 5, 3, 5),
        I32,
    ),
    "conv3d": (
        lambda t: t.conv(
            "CONV3D", (1, 4, 5, 6, 2), (3, 2, 3, 4, 2), 3, pad=(0, 0, 1, 1, 0, 0), stride=(2, 1, 2)
        ),
        (1, 2, 5, 2, 3),
        I32,
    ),
    "depthwise_conv2d": (
        lambda t: t.conv(
            "DEPTHWISE_CONV2D", (2, 5, 5, 3), (3, 3, 3, 4), 12, pad=(1, 1, 1, 1), stride=(2, 2)
        ),
        (2, 3, 3, 12),
        I32,
    ),
    "transpose_conv2d": (
        lambda t: t.conv(
            "TRANSPOSE_CONV2D", (1, 3, 4, 2), (5, 3, 2, 2), 5, out_pad=(-1, 0, 1, 2), stride=(2, 3)
        ),
        (1, 6, 14, 5),
        I32,
    ),
    "max_pool2d": (
        lambda t: t.b(
            "MAX_POOL2D", t.input(I8, 1, 5, 6, 3), kernel=(3, 2), stride=(2, 2), pad=(1, 1, 0, 0)
        ),
        (1, 3, 3, 3),
        I8,
    ),
    "matmul": (
        lambda t: t.b(
            "MATMUL", t.input(I16, 2, 3, 4), t.input(I16, 2, 4, 5), t.zero(I16), t.zero(I16)
        ),
        (2, 3, 5),
        I48,
    ),
    "matmul in half precision": (
        lambda t: t.b(
            "MATMUL",
            t.input(F16, 2, 3, 4),
            t.input(F16, 2, 4, 5),
            t.zero(F16),
            t.zero(F16),
            dtype=F32,
        ),
        (2, 3, 5),
        F32,
    ),
    "add": (lambda t: t.b("ADD", t.input(I32, 2, 1, 4), t.input(I32, 1, 3, 4)), (2, 3, 4), I32),
    "equal": (lambda t: t.b("EQUAL", t.input(I32, 3), t.input(I32, 1)), (3,), BOOL),
    "mul": (lambda t: t.b("MUL", t.input(I8, 2), t.input(I8, 2), t.zero(I8)), (2,), I32),
    "select": (
        lambda t: t.b("SELECT", t.input(BOOL, 1, 1), t.input(I8, 2, 1), t.input(I8, 1, 3)),
        (2, 3),
        I8,
    ),
    "table": (lambda t: t.b("TABLE", t.input(I16, 4), t.input(I16, 513)), (4,), I32),
    "reduce": (lambda t: t.b("REDUCE_SUM", t.input(I32, 2, 3, 4), axis=1), (2, 1, 4), I32),
    "concat": (
        lambda t: t.b("CONCAT", t.input(I8, 2, 3), t.input(I8, 2, 1), t.input(I8, 2, 4), axis=1),
        (2, 8),
        I8,
    ),
    "pad": (
        lambda t: t.b("PAD", t.input(I8, 2, 3), t.b.shape((1, 0, 2, 4)), t.zero(I8)),
        (3, 9),
        I8,
    ),
    "reshape": (lambda t: t.b("RESHAPE", t.input(I8, 2, 3), t.b.shape((6, 1))), (6, 1), I8),
    "reshape to a scalar": (lambda t: t.b("RESHAPE", t.input(I8, 1), t.b.shape(())), (), I8),
    "slice": (
        lambda t: t.b("SLICE", t.input(I8, 4, 5), t.b.shape((1, 2)), t.b.shape((3, 3))),
        (3, 3),
        I8,
    ),
    "tile": (lambda t: t.b("TILE", t.input(I8, 4, 5), t.b.shape((1, 3))), (4, 15), I8),
    "transpose": (lambda t: t.b("TRANSPOSE", t.input(I8, 2, 3, 4), perms=(2, 0, 1)), (4, 2, 3), I8),
    "gather": (lambda t: t.b("GATHER", t.input(I8, 2, 5, 3), t.input(I32, 2, 7)), (2, 7, 3), I8),
    "scatter": (
        lambda t: t.b("SCATTER", t.input(I8, 2, 5, 3), t.input(I32, 2, 4), t.input(I8, 2, 4, 3)),
        (2, 5, 3),
        I8,
    ),
    # Half-pixel centres, twice as large: (4 - 1) * 4 + 1 + 1 = 14 = 7 * 2.
    "resize": (
        lambda t: t.resize((1, 4, 4, 3), (4, 2, 4, 2), (-1, -1), (1, 1), mode=ResizeMode.BILINEAR),
        (1, 8, 8, 3),
        I32,
    ),
    "resize to the nearest": (
        lambda t: t.resize((1, 4, 4, 3), (1, 1, 2, 1), (0, 0), (0, 1), mode=ResizeMode.NEAREST),
        (1, 4, 8, 3),
        I8,
    ),
    "cast": (lambda t: t.b("CAST", t.input(I32, 4), dtype=F32), (4,), F32),
    "rescale": (
        lambda t: t.b(
            "RESCALE",
            t.input(I48, 2, 3),
            t.b.constant([1, 2, 3], I16),
            t.b.constant([2, 2, 2], I8),
            t.zero(I48),
            t.zero(I16),
            scale32=False,
            per_channel=True,
            rounding_mode=RoundingMode.SINGLE_ROUND,
        ),
        (2, 3),
        I16,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str, bench: Bench) -> None:
    build, shape, dtype = RESULTS[name]
    value = build(bench)
    assert value.type == TensorType(shape, dtype)


REFUSALS: dict[str, tuple[Callable[[Bench], object], str]] = {
    "unknown": (
        lambda t: t.b("CONV", t.input(I8, 1)),
        "error[E801]: an operation must be one of TOSA 1.0, and is CONV\n  at   model",
    ),
    "operands": (
        lambda t: t.b("ADD", t.input(I32, 1)),
        "error[E802]: ADD: operands must be 2 (input1, input2), and are 1",
    ),
    "no operands": (
        lambda t: t.b("CONCAT", axis=0),
        "error[E802]: CONCAT: operands must be at least 1 (input1), and are 0",
    ),
    "types": (
        lambda t: t.b("ADD", t.input(I8, 1), t.input(I32, 1)),
        "error[E803]: ADD: has no form for element types i8, i32",
    ),
    "result type": (
        lambda t: t.b("CAST", t.input(BOOL, 1), dtype=F32),
        "error[E803]: CAST: of bool must give i16 or i32 or i8, not f32",
    ),
    "no result type": (
        lambda t: t.b("CAST", t.input(I8, 1)),
        "error[E804]: CAST: the element type of the result must be given",
    ),
    "unknown attribute": (
        lambda t: t.b("ARGMAX", t.input(I8, 1), axes=0),
        "error[E804]: ARGMAX: attributes must be axis, nan_mode, not axes",
    ),
    "missing attributes": (
        lambda t: t.b("MAX_POOL2D", t.input(I8, 1, 2, 2, 1), pad=(0, 0, 0, 0)),
        "error[E804]: MAX_POOL2D: kernel, stride must be given",
    ),
    "accumulator": (
        lambda t: t.conv(
            "CONV2D", (1, 1, 1, 1), (1, 1, 1, 1), 1, pad=(0, 0, 0, 0), stride=(1, 1), acc_type=I48
        ),
        "error[E804]: CONV2D: acc_type must be i32 for i8, i8, i32, i8, i8, and is i48",
    ),
    "no constant": (
        lambda t: t.b("RESHAPE", t.input(I8, 1), t.input(DType.SHAPE, 1)),
        "error[E805]: RESHAPE: shape must be a constant",
    ),
    "rank": (
        lambda t: t.b("RFFT2D", t.input(F32, 2, 2)),
        "error[E806]: RFFT2D: input_real must have rank 3, and is (2, 2)",
    ),
    "nothing left": (
        lambda t: t.conv(
            "TRANSPOSE_CONV2D",
            (1, 2, 2, 2),
            (5, 3, 3, 2),
            5,
            out_pad=(-2, -2, 0, 0),
            stride=(1, 1),
        ),
        "error[E806]: TRANSPOSE_CONV2D: out_pad must leave rows and columns, and "
        "(-2, -2, 0, 0) leaves [0, 4]",
    ),
    "rank of a scalar": (
        lambda t: t.b("REVERSE", t.input(I8), axis=0),
        "error[E806]: REVERSE: input1 must have rank at least 1, and is ()",
    ),
    "axis": (
        lambda t: t.b("REVERSE", t.input(I8, 2, 2), axis=-1),
        "error[E806]: REVERSE: axis must be a dimension of (2, 2), and is -1",
    ),
    "broadcast": (
        lambda t: t.b("ADD", t.input(I32, 2, 3), t.input(I32, 3, 3)),
        "error[E806]: ADD: dimensions must be equal or 1 to broadcast, and are (2, 3) and (3, 3)",
    ),
    "broadcast of ranks": (
        lambda t: t.b("ADD", t.input(I32, 2, 3), t.input(I32, 3)),
        "error[E806]: ADD: operands must have one rank to broadcast, and have (2, 3) and (3,)",
    ),
    "stride": (
        lambda t: t.conv("CONV2D", (1, 8, 8, 3), (1, 3, 3, 3), 1, pad=(1, 1, 1, 1), stride=(2, 2)),
        "error[E806]: CONV2D: padded size - 1 - (kernel - 1) * dilation must be a multiple of the "
        "stride, and is 10 - 1 - 2 * 1 for stride 2",
    ),
    "channels": (
        lambda t: t.conv("CONV2D", (1, 1, 1, 3), (1, 1, 1, 2), 1, pad=(0,) * 4, stride=(1, 1)),
        "error[E806]: CONV2D: weight must have the input's 3 channels, and has 2",
    ),
    "bias": (
        lambda t: t.conv("CONV2D", (1, 1, 1, 3), (4, 1, 1, 3), 3, pad=(0,) * 4, stride=(1, 1)),
        "error[E806]: CONV2D: bias must have 1 or 4 elements, and has 3",
    ),
    "clamp": (
        lambda t: t.b("CLAMP", t.input(I8, 1), min_val=-129, max_val=0),
        "error[E806]: CLAMP: bounds must be i8 values, and are -129 and 0",
    ),
    "table": (
        lambda t: t.b("TABLE", t.input(I8, 1), t.input(I8, 255)),
        "error[E806]: TABLE: a table for i8 must have 256 elements, and has 255",
    ),
    "concat": (
        lambda t: t.b("CONCAT", t.input(I8, 2, 3), t.input(I8, 3, 3), axis=1),
        "error[E806]: CONCAT: operands must have one shape but for axis 1, "
        "and have (2, 3) and (3, 3)",
    ),
    "slice": (
        lambda t: t.b("SLICE", t.input(I8, 4), t.b.shape((2,)), t.b.shape((3,))),
        "error[E806]: SLICE: start and size must lie within (4,), and are (2,) and (3,)",
    ),
    "perms": (
        lambda t: t.b("TRANSPOSE", t.input(I8, 4, 4), perms=[0, 0]),
        "error[E806]: TRANSPOSE: perms must permute the dimensions of (4, 4), and are (0, 0)",
    ),
    "resize": (
        lambda t: t.resize((1, 4, 4, 3), (4, 2, 4, 2), (0, 0), (1, 1), mode=ResizeMode.NEAREST),
        "error[E806]: RESIZE: (size - 1) * scale_n - offset + border must be a multiple of "
        "scale_d, and is 3 * 4 - 0 + 1 for 2",
    ),
    "custom": (
        lambda t: t.b("CUSTOM", operator_name="x"),
        "error[E806]: CUSTOM: the results of a custom operator must be given; they do not follow",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, bench: Bench) -> None:
    build, message = REFUSALS[name]
    bench.b = bench.b.at(Origin(module="model.0", operator=4), 7)
    with pytest.raises(MizzenError) as caught:
        build(bench)
    assert caught.value.diagnostic.render().startswith(message)
    assert caught.value.diagnostic.origin == bench.b.origin
    kinds = {operation.kind for operation in bench.graph}
    assert kinds <= {"CONST", "CONST_SHAPE"}, "what is refused must not be in the graph"


def test_a_refusal_says_where_the_rule_is(bench: Bench) -> None:
    with pytest.raises(MizzenError) as caught:
        bench.b("ADD", bench.input(I8, 1), bench.input(I8, 1))
    assert caught.value.diagnostic.rule == "TOSA 1.0, 2.5.1 ADD"


def test_attributes_are_complete(bench: Bench) -> None:
    value = bench.conv("CONV2D", (1, 1, 1, 3), (4, 1, 1, 3), 4, pad=[0, 0, 0, 0], stride=(1, 1))
    assert value.producer is not None
    assert value.producer.attributes == {
        "pad": (0, 0, 0, 0),
        "stride": (1, 1),
        "dilation": (1, 1),
        "local_bound": False,
        "acc_type": I32,
    }
    pooled = bench.b("REDUCE_MAX", value, axis=0).producer
    assert pooled is not None
    assert pooled["nan_mode"] is NanMode.PROPAGATE


def test_half_precision_accumulates_in_single_unless_told(bench: Bench) -> None:
    data, zero = bench.input(F16, 1, 2, 2, 1), bench.zero(F16)
    window: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 1), "pad": (0,) * 4}
    choices: list[tuple[dict[str, Any], DType]] = [({}, F32), ({"acc_type": F16}, F16)]
    for given, acc_type in choices:
        value = bench.b("AVG_POOL2D", data, zero, zero, **window, **given)
        assert value.producer is not None
        assert value.producer["acc_type"] is acc_type


def test_place_and_quantization(bench: Bench) -> None:
    origin, quantization = Origin(module="a.b"), Quantization((0.5,), (3,))
    value = bench.b.at(origin, 4)("REVERSE", bench.input(I8, 2), axis=0, quantization=quantization)
    assert value.producer is not None
    assert (value.producer.origin, value.producer.group) == (origin, 4)
    assert value.type == TensorType((2,), I8, quantization)


def test_small_constants_are_shared(bench: Bench) -> None:
    other = Builder(bench.graph, Origin(module="a"), 3)
    zero = bench.b.constant([0], I8)
    assert other.constant(np.zeros(1, np.int8), I8) is zero
    assert zero.producer is not None
    assert (zero.producer.group, zero.producer.origin) == (None, None)
    different = [
        other.constant([1], I8),
        other.constant([0], I16),
        other.constant([[0]], I8),
        other.constant([0], I8, Quantization((1.0,), (0,))),
        Builder(Graph()).constant([0], I8),
    ]
    assert len({zero, *different}) == 6


def test_large_constants_are_of_their_group(bench: Bench) -> None:
    builder = bench.b.at(Origin(module="a"), 3)
    weights = np.arange(17, dtype=np.int8)
    first, second = builder.constant(weights, I8), builder.constant(weights, I8)
    assert first is not second
    assert first.producer is not None
    assert first.producer.group == 3
    assert first.constant is weights


def test_an_erased_constant_is_not_shared(bench: Bench) -> None:
    zero = bench.b.constant([0], I8)
    bench.graph.erase_dead()
    again = bench.b.constant([0], I8)
    assert zero is not again
    assert again.producer in list(bench.graph)


def test_a_shared_constant_is_not_the_callers_array(bench: Bench) -> None:
    values = np.array([1, 2], np.int32)
    value = bench.b.constant(values, I32)
    values[0] = 9
    assert value.constant is not None
    assert value.constant.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        value.constant[0] = 3


def test_graphs_are_not_kept_alive() -> None:
    graph = Graph()
    Builder(graph).constant([0], I8)
    alive = weakref.ref(graph)
    del graph
    gc.collect()
    assert alive() is None


def test_custom(bench: Bench) -> None:
    types = [TensorType((2,), DType.INT64), TensorType((), DType.FP64)]
    operands = [bench.input(DType.INT64, 2)]
    results = bench.b.custom("torch.sort", operands, types, domain_name="torch")
    assert [result.type for result in results] == types
    assert results[0].producer is not None
    assert results[0].producer.attributes == {
        "operator_name": "torch.sort",
        "domain_name": "torch",
        "implementation_attrs": b"",
    }


def branch(name: str, kind: str) -> Graph:
    graph = Graph(name)
    x = graph.add_input(TensorType((2,), I32))
    graph.set_outputs([Builder(graph)(kind, x, x)])
    return graph


def test_control_flow(bench: Bench) -> None:
    condition, x = bench.input(BOOL), bench.input(I32, 2)
    (result,) = bench.b.many(
        "COND_IF", condition, x, then_graph=branch("a", "ADD"), else_graph=branch("b", "SUB")
    )
    assert result.type == TensorType((2,), I32)
    with pytest.raises(MizzenError) as caught:
        bench.b("COND_IF", condition, then_graph=branch("a", "ADD"), else_graph=branch("b", "SUB"))
    assert caught.value.diagnostic.message == (
        "COND_IF: then_graph must take (), and takes (tensor<2xi32>)"
    )


def test_variables(bench: Bench) -> None:
    type = TensorType((2,), I8)
    assert bench.b.many("VARIABLE", name="state", type=type) == ()
    value = bench.b("VARIABLE_READ", name="state", type=type)
    assert value.type == type
    assert bench.b.many("VARIABLE_WRITE", value, name="state") == ()


def test_building_is_fast(bench: Bench) -> None:
    """One operation takes less than 20 us on an idle machine; the best of runs is near to it.

    The bound is ten times that: it finds quadratic work, not a slow or busy machine.
    """
    x = bench.input(I8, 1, 8, 8, 16)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(1000):
            bench.b("TRANSPOSE", x, perms=(0, 3, 1, 2))
        best = min(best, (time.process_time() - start) / 1000)
    assert best < 200e-6
