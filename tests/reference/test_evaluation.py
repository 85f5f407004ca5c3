"""Evaluating graphs: order, state, what callers are told, and what is refused."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.graph import Array, DType, Graph, Operation, TensorType, Value
from mizzen.ops import Builder
from mizzen.reference import apply, evaluate

I8 = TensorType((2,), DType.INT8)
I32 = TensorType((2,), DType.INT32)


def array(*values: int, dtype: str = "int32") -> Array:
    return np.array(values, dtype)


def refused(graph: Graph, *inputs: Array) -> str:
    with pytest.raises(MizzenError) as caught:
        evaluate(graph, inputs)
    return str(caught.value)


def doubling() -> Graph:
    graph = Graph()
    value = graph.add_input(I32, "x")
    graph.set_outputs([Builder(graph)("ADD", value, value)])
    return graph


def test_operations_run_in_order_of_need() -> None:
    graph = Graph()
    value = graph.add_input(I32)
    # The second operation is added first: the graph keeps no order but that of need.
    late = graph.add("ADD", [value, value], [I32])
    early = graph.add("SUB", [value, value], [I32])
    graph.set_operand(late, 1, early.result)
    graph.set_outputs([late.result, value, late.result])
    results = evaluate(graph, [array(3, 4)])
    assert [each.tolist() for each in results] == [[3, 4], [3, 4], [3, 4]]


def test_trace_is_told_every_value_but_constants() -> None:
    graph = Graph()
    value = graph.add_input(I32, "x")
    builder = Builder(graph)
    inner = builder("ADD", value, builder.constant([1, 2], DType.INT32))
    outer = builder("SUB", inner, value)
    graph.set_outputs([outer])
    told: dict[object, list[int]] = {}
    evaluate(graph, [array(5, 6)], trace=lambda each, elements: told.update({each: [*elements]}))
    assert told == {value: [5, 6], inner: [6, 8], outer: [1, 2]}


def test_values_are_let_go_when_nobody_needs_them_any_more() -> None:
    graph = Graph()
    value = graph.add_input(I32)
    builder = Builder(graph)
    for _ in range(5):
        value = builder("SUB", value, value)
    graph.set_outputs([value])
    seen: list[weakref.ref[Array]] = []
    living: list[int] = []

    def count(each: Value, elements: Array) -> None:
        seen.append(weakref.ref(elements))
        living.append(sum(ref() is not None for ref in seen))

    evaluate(graph, [array(1, 2)], trace=count)
    assert max(living) <= 3  # the caller's input, an operand, a result


@pytest.mark.parametrize(("inputs", "message"), [
    ((), "1 inputs must be given for main, not 0"),
    ((array(1, 2, 3),), "input 0 (x) must be int32 (2,), and is int32 (3,)"),
    ((array(1, 2, dtype="int64"),), "input 0 (x) must be int32 (2,), and is int64 (2,)"),
])  # fmt: skip
def test_inputs_must_be_what_the_graph_takes(inputs: tuple[Array, ...], message: str) -> None:
    assert refused(doubling(), *inputs) == f"error[E820]: {message}"


@pytest.mark.parametrize(("dtype", "held", "came", "message"), [
    (DType.INT4, "int8", 8, "input 0 must be i4, -8 to 7, and has 8"),
    (DType.INT48, "int64", -(2**47) - 1,
     "input 0 must be i48, -140737488355328 to 140737488355327, and has -140737488355329"),
])  # fmt: skip
def test_inputs_must_be_in_the_range_of_their_type(
    dtype: DType, held: str, came: int, message: str
) -> None:
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType((2,), dtype))])
    assert refused(graph, array(0, came, dtype=held)) == f"error[E820]: {message}"


def test_an_open_result_is_refused_where_it_comes_from() -> None:
    graph = Graph()
    value = graph.add_input(I32)
    origin = Origin(model="net.py", operator=3, kind="aten.add")
    graph.set_outputs([Builder(graph, origin)("ADD", value, value)])
    assert refused(graph, array(1, 2**30)) == (
        "error[E822]: ADD: must give i32, from -2147483648 to 2147483647, not 2147483648\n"
        "  at   net.py, operator 3 aten.add\n"
        "  rule TOSA 1.0, REQUIRE of ADD"
    )


def custom_graph() -> Graph:
    graph = Graph()
    value = graph.add_input(I8)
    graph.set_outputs(Builder(graph).custom("aten.sort", [value], [I8, I32]))
    return graph


def test_a_custom_operation_is_refused_if_nobody_computes_it() -> None:
    assert refused(custom_graph(), array(1, 2, dtype="int8")) == (
        "error[E821]: CUSTOM: the reference must know the operator, and does not know aten.sort\n"
        "  help evaluate the parts of the graph around it, or say in `custom` what it computes"
    )


def test_a_custom_operation_is_computed_by_the_caller() -> None:
    def sort(operation: Operation, operands: Sequence[Array]) -> list[Array]:
        assert operation["operator_name"] == "aten.sort"
        return [np.sort(operands[0]), np.argsort(operands[0]).astype(np.int32)]

    values, places = evaluate(custom_graph(), [array(7, 2, dtype="int8")], custom=sort)
    assert (values.tolist(), places.tolist()) == ([2, 7], [1, 0])


@pytest.mark.parametrize(("results", "message"), [
    ([array(1, 2)], "2 results must be given by aten.sort, not 1"),
    ([array(1, 2)] * 2, "result 0 of aten.sort must be int8 (2,), and is int32 (2,)"),
])  # fmt: skip
def test_results_of_a_custom_operation_must_have_its_types(
    results: list[Array], message: str
) -> None:
    with pytest.raises(MizzenError) as caught:
        evaluate(
            custom_graph(), [array(1, 2, dtype="int8")], custom=lambda operation, operands: results
        )
    assert str(caught.value) == f"error[E820]: {message}"


def counting() -> Graph:
    """Return a graph that adds what it is given to a variable, and gives that."""
    graph = Graph()
    value = graph.add_input(I32)
    builder = Builder(graph)
    builder.many("VARIABLE", name="sum", type=I32, initial=array(10, 20))
    total = builder("ADD", builder("VARIABLE_READ", name="sum", type=I32), value)
    builder.many("VARIABLE_WRITE", total, name="sum")
    graph.set_outputs([total])
    return graph


def test_variables_last_from_one_evaluation_to_the_next() -> None:
    state: dict[str, Array] = {}
    results = [evaluate(counting(), [array(1, 2)], variables=state)[0].tolist() for _ in range(2)]
    assert results == [[11, 22], [12, 24]]
    assert state["sum"].tolist() == [12, 24]


def test_variables_start_anew_where_no_state_is_kept() -> None:
    assert evaluate(counting(), [array(1, 2)])[0].tolist() == [11, 22]
    assert evaluate(counting(), [array(1, 2)])[0].tolist() == [11, 22]


def test_a_variable_must_have_a_value_to_be_read() -> None:
    graph = Graph()
    builder = Builder(graph)
    builder.many("VARIABLE", name="h", type=I32)
    graph.set_outputs([builder("VARIABLE_READ", name="h", type=I32)])
    assert refused(graph) == (
        "error[E823]: VARIABLE_READ: a variable must be written before it is read, and h was not\n"
        "  rule TOSA 1.0, 2.17.3 VARIABLE_READ\n"
        "  help give it an initial value, or a value in `variables`"
    )
    assert evaluate(graph, [], variables={"h": array(3, 4)})[0].tolist() == [3, 4]


@pytest.mark.parametrize(("condition", "result"), [(True, [6, 8]), (False, [0, 0])])
def test_one_branch_is_evaluated(condition: bool, result: list[int]) -> None:
    graph, branches = Graph(), []
    for kind in ("ADD", "SUB"):
        branch = Graph(kind.lower())
        value = branch.add_input(I32)
        branch.set_outputs([Builder(branch)(kind, value, value)])
        branches.append(branch)
    flag = graph.add_input(TensorType((1,), DType.BOOL))
    value = graph.add_input(I32)
    results = Builder(graph).many(
        "COND_IF", flag, value, then_graph=branches[0], else_graph=branches[1]
    )
    graph.set_outputs(results)
    assert evaluate(graph, [np.array([condition]), array(3, 4)])[0].tolist() == result


def test_a_loop_runs_for_as_long_as_its_condition_holds() -> None:
    one = TensorType((1,), DType.INT32)
    condition, inside, graph = Graph("condition"), Graph("inside"), Graph()
    count, total = condition.add_input(one), condition.add_input(one)
    builder = Builder(condition)
    condition.set_outputs([builder("GREATER", builder.constant([4], DType.INT32), count)])
    count, total = inside.add_input(one), inside.add_input(one)
    builder = Builder(inside)
    more = builder("ADD", count, builder.constant([1], DType.INT32))
    inside.set_outputs([more, builder("ADD", total, more)])
    values = [graph.add_input(one), graph.add_input(one)]
    graph.set_outputs(
        Builder(graph).many("WHILE_LOOP", *values, cond_graph=condition, body_graph=inside)
    )
    results = evaluate(graph, [array(0), array(100)])
    assert [each.tolist() for each in results] == [[4], [100 + 1 + 2 + 3 + 4]]
    assert evaluate(graph, [array(9), array(5)]) == [array(9), array(5)]


def test_one_operation_can_be_applied_alone() -> None:
    graph = doubling()
    (operation,) = graph
    assert apply(operation, [array(1, 2), array(3, 4)])[0].tolist() == [4, 6]
