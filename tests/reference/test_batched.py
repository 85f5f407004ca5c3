"""Several inferences at once are what each is alone: numbers, errors, and what callers are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.graph import Array, DType, Graph, TensorType, Value
from mizzen.ops import Builder, Definition, Row
from mizzen.reference import evaluate, evaluate_batch

from .cases import ROWS, Case, cases
from .test_against_tosa import named
from .test_networks import below, step

EXAMPLES = 4
ONE = TensorType((1,), DType.INT32)


def alone(graph: Graph, inputs: list[Array], count: int) -> list[Array] | str:
    try:
        rows = [evaluate(graph, [array[index] for array in inputs]) for index in range(count)]
    except MizzenError as error:
        return str(error)
    return [np.stack(same) for same in zip(*rows, strict=True)]


def together(graph: Graph, inputs: list[Array], count: int) -> list[Array] | str:
    try:
        return evaluate_batch(graph, inputs, count)
    except MizzenError as error:
        return str(error)


def same(graph: Graph, inputs: list[Array], count: int) -> None:
    one, other = alone(graph, inputs, count), together(graph, inputs, count)
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    for ours, theirs in zip(other, one, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("definition", "row"), ROWS, ids=named)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_each_operation_is_what_it_is_alone(
    definition: Definition, row: Row, data: st.DataObject
) -> None:
    case: Case = data.draw(cases(definition, row))
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    count = data.draw(st.integers(1, 3))
    # Elements change places within each inference: other numbers that the operation may take.
    inputs = [
        np.stack(
            [
                array if not index else random.permuted(array.reshape(-1)).reshape(array.shape)
                for index in range(count)
            ]
        )
        for array in case.inputs
    ]
    same(case.graph, inputs, count)


def adding(inputs: int) -> tuple[Graph, Builder, list[Value]]:
    graph = Graph()
    return graph, Builder(graph), [graph.add_input(ONE, f"x{index}") for index in range(inputs)]


def column(*values: int) -> Array:
    return np.array(values, np.int32)[:, None]


def test_the_first_inference_that_cannot_be_computed_says_why() -> None:
    graph, builder, (one, other) = adding(2)
    graph.set_outputs([builder("INTDIV", one, other)])
    same(graph, [column(1, 2, -(2**31)), column(1, 0, -1)], 3)
    with pytest.raises(MizzenError, match="the divisor must not be 0"):
        evaluate_batch(graph, [column(1, 2, -(2**31)), column(1, 0, -1)], 3)


def test_constants_are_computed_once_and_told_for_each_inference() -> None:
    graph, builder, (value,) = adding(1)
    shared = builder("ADD", builder.constant([1], DType.INT32), builder.constant([2], DType.INT32))
    graph.set_outputs([builder("ADD", value, shared), shared])
    told: dict[Value, Array] = {}

    def trace(value: Value, array: Array) -> None:
        told[value] = array

    results = evaluate_batch(graph, [column(10, 20)], 2, trace=trace)
    assert [array.tolist() for array in results] == [[[13], [23]], [[3], [3]]]
    assert told[shared].tolist() == [[3], [3]]
    assert told[value].tolist() == [[10], [20]]


def test_what_a_trace_returns_is_taken_instead() -> None:
    graph, builder, (value,) = adding(1)
    graph.set_outputs([builder("ADD", value, value)])
    found = evaluate_batch(
        graph, [column(1, 2)], 2, trace=lambda each, array: array + 5 if each is value else None
    )
    assert found[0].tolist() == [[12], [14]]


def test_weights_may_differ_from_inference_to_inference() -> None:
    graph = Graph()
    image = graph.add_input(TensorType((1, 4, 4, 2), DType.INT8))
    weight = graph.add_input(TensorType((3, 2, 2, 2), DType.INT8))
    builder = Builder(graph)
    bias = builder.constant([1, 2, 3], DType.INT32)
    zero = builder.constant([3], DType.INT8)
    attributes: dict[str, Any] = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
    graph.set_outputs(
        [builder("CONV2D", image, weight, bias, zero, zero, acc_type=DType.INT32, **attributes)]
    )
    random = np.random.default_rng(3)
    inputs = [
        random.integers(-128, 128, (3, *value.shape)).astype(np.int8) for value in (image, weight)
    ]
    same(graph, inputs, 3)
    same(graph, [inputs[0], np.broadcast_to(inputs[1][0], inputs[1].shape)], 3)


def test_control_flow_and_variables_are_of_each_inference() -> None:
    graph, b, (value,) = adding(1)
    b.many("VARIABLE", name="state", type=ONE, initial=np.array([3], np.int32))
    before = b("VARIABLE_READ", name="state", type=ONE)
    turns, total = b.many(
        "WHILE_LOOP", value, before, cond_graph=below(ONE, 20), body_graph=step(ONE, "ADD")
    )
    b.many("VARIABLE_WRITE", total, name="state")
    flag = b("GREATER", total, b.constant([10], DType.INT32))
    branches: dict[str, Any] = {"then_graph": step(ONE, "SUB"), "else_graph": step(ONE, "ADD")}
    after = b("VARIABLE_READ", name="state", type=ONE)
    graph.set_outputs([after, *b.many("COND_IF", flag, turns, total, **branches)])
    inputs = [column(0, 17, 30)]
    assert len({*np.ravel(evaluate_batch(graph, inputs, 3)[0]).tolist()}) == 3
    same(graph, inputs, 3)


def test_a_custom_operation_is_given_all_inferences() -> None:
    graph, b, (value,) = adding(1)
    graph.set_outputs(b.custom("triple", [value], [ONE]))
    found = evaluate_batch(graph, [column(1, 2)], 2, custom=lambda _, operands: [operands[0] * 3])
    assert found[0].tolist() == [[3], [6]]
    with pytest.raises(MizzenError, match="result 0 of triple must be int32"):
        evaluate_batch(graph, [column(1, 2)], 2, custom=lambda _, operands: [operands[0][0]])
    with pytest.raises(MizzenError, match="does not know triple"):
        evaluate_batch(graph, [column(1, 2)], 2)
