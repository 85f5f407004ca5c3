"""Edits of a graph, and the order of its operations."""

from __future__ import annotations

import random

import pytest

from mizzen.graph import DType, Graph, Operation, Quantization, TensorType, Value, integer_range
from mizzen.ops import Builder, verify

I32 = DType.INT32
TYPE = TensorType((2,), I32)


def add(graph: Graph, *operands: Value) -> Operation:
    return graph.add("ADD", operands, [TYPE])


def diamond() -> tuple[Graph, Value, list[Operation]]:
    graph = Graph()
    x = graph.add_input(TYPE, "x")
    top = add(graph, x, x)
    left, right = add(graph, top.result, x), add(graph, x, top.result)
    bottom = add(graph, left.result, right.result)
    graph.set_outputs([bottom.result])
    return graph, x, [top, left, right, bottom]


def test_uses_are_counted() -> None:
    graph, x, (top, left, right, bottom) = diamond()
    assert x.uses == {top: 2, left: 1, right: 1}
    assert top.result.uses == {left: 1, right: 1}
    assert bottom.result.uses == {}
    assert len(graph) == 4
    assert top in graph


def test_set_operand() -> None:
    graph, x, (top, left, _, bottom) = diamond()
    version = graph.version
    graph.set_operand(left, 0, top.result)
    assert graph.version == version, "nothing changed"
    graph.set_operand(left, 0, x)
    assert graph.version > version
    assert x.uses[left] == 2
    assert left not in top.result.uses
    assert verify(graph) == []
    assert bottom.operands[0] is left.result


def test_replace_takes_outputs_along() -> None:
    graph, x, (top, left, right, bottom) = diamond()
    graph.replace(top.result, x)
    assert top.result.uses == {}
    assert x.uses == {top: 2, left: 2, right: 2}
    graph.replace(bottom.result, left.result)
    assert graph.outputs == [left.result]
    assert verify(graph) == []


def test_erase_dead() -> None:
    graph, x, (top, left, right, bottom) = diamond()
    graph.set_outputs([left.result])
    graph.erase_dead()
    assert list(graph) == [top, left]
    assert x.uses == {top: 2, left: 1}
    assert top.result.uses == {left: 1}
    assert right not in graph
    assert bottom not in graph


def test_operations_with_effects_stay() -> None:
    graph = Graph()
    b = Builder(graph)
    x = graph.add_input(TYPE)
    b.many("VARIABLE", name="state", type=TYPE)
    b.many("VARIABLE_WRITE", b("ADD", x, x), name="state")
    b("VARIABLE_READ", name="state", type=TYPE)
    graph.erase_dead()
    assert [operation.kind for operation in graph] == ["VARIABLE", "ADD", "VARIABLE_WRITE"]


def test_erase_needs_no_users() -> None:
    graph, _, (top, *_) = diamond()
    with pytest.raises(AssertionError):
        graph.erase(top)


def test_sorted_keeps_an_order_that_holds() -> None:
    graph, _, operations = diamond()
    assert graph.sorted() == operations


def test_sorted_moves_what_is_needed_first() -> None:
    graph, x, (top, left, right, bottom) = diamond()
    late = add(graph, x, x)
    graph.set_operand(left, 1, late.result)
    assert graph.sorted() == [top, late, left, right, bottom]


def test_sorted_refuses_a_cycle() -> None:
    graph, _, (top, left, *_) = diamond()
    graph.set_operand(top, 0, left.result)
    with pytest.raises(ValueError, match="ADD needs its own result"):
        graph.sorted()


def test_sorted_is_an_order_of_execution() -> None:
    """Of any graph: here of many with edges from later to earlier operations."""
    for seed in range(50):
        rng = random.Random(seed)
        graph = Graph()
        values = [graph.add_input(TYPE)]
        operations: list[Operation] = []
        for _ in range(30):
            operations.append(add(graph, rng.choice(values), rng.choice(values)))
            values.append(operations[-1].result)
        position = {operation: index for index, operation in enumerate(operations)}
        for operation in rng.sample(operations, 10):
            # A chain of new operations behind all others, of earlier results: no cycle can come.
            early = rng.choice(operations[: position[operation] + 1]).operands[0]
            graph.set_operand(operation, 1, add(graph, early, early).result)
        seen = set(graph.inputs)
        for operation in graph.sorted():
            assert seen.issuperset(operation.operands)
            seen.update(operation.results)
        assert len(graph.sorted()) == len(graph)


def test_a_long_chain_needs_no_deep_stack() -> None:
    graph = Graph()
    first = graph.add_input(TYPE)
    operations = [add(graph, first, first) for _ in range(20_000)]
    for before, after in zip(operations[1:], operations, strict=False):
        graph.set_operand(after, 0, before.result)
    assert graph.sorted() == operations[::-1]


def test_constants() -> None:
    graph = Graph()
    value = graph.constant([1, 2], DType.SHAPE)
    assert value.producer is not None
    assert value.producer.kind == "CONST_SHAPE"
    assert value.constant is not None
    assert value.constant.tolist() == [1, 2]
    assert add(graph, value, value).result.constant is None


def test_types() -> None:
    quantized = TensorType((2, 3), DType.INT8, Quantization((0.5,), (-1,)))
    assert (quantized.rank, quantized.elements) == (2, 6)
    assert TensorType((), I32).elements == 1
    assert quantized.with_shape((6,)) == TensorType((6,), DType.INT8, Quantization((0.5,), (-1,)))
    assert quantized.with_dtype(I32) == TensorType((2, 3), I32)
    assert quantized.quantized(None) == TensorType((2, 3), DType.INT8)
    assert integer_range(DType.INT48) == (-(2**47), 2**47 - 1)
    assert str(quantized) == "tensor<2x3xi8, scale 0.5 zp -1>"
    assert str(TensorType((), DType.FP32)) == "tensor<f32>"
