"""Placement: whole groups, in regions that follow one another and compute what the graph does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from hypothesis import given

from mizzen.diagnostics import Reason
from mizzen.graph import Array, DType, Graph, Operation, TensorType, Value
from mizzen.ops import Builder
from mizzen.partition import Device, Partition, Region, extract, partition
from mizzen.partition.placement import TRANSFERS
from mizzen.reference import evaluate

from .random_graphs import RULE, Drawn, drawn

NPU, CPU = Device.NPU, Device.CPU


def nothing(_: Operation) -> tuple[Reason, ...]:
    return ()


def by_parts(graph: Graph, regions: Iterable[Region], inputs: dict[Value, Array]) -> list[Array]:
    """Evaluate one region after another; a value that is not there yet is a KeyError."""
    known = dict(inputs)
    for region in regions:
        part = extract(graph, region.groups)
        results = evaluate(part.graph, [known[value] for value in part.inputs])
        known.update(zip(part.outputs, results, strict=True))
    return [known[value] for value in graph.outputs]


@given(drawn())
def test_every_group_is_in_one_region_on_its_side(net: Drawn) -> None:
    found = net.placed()
    assert sorted(group for row in found.regions for group in row.groups) == sorted(net.groups)
    assert set(found.groups) == set(net.groups)
    for region in found.regions:
        assert {found.groups[group].device for group in region.groups} == {region.device}
    for group, placed in found.groups.items():
        assert placed.group == group
        assert (placed.device is CPU) == bool(placed.reasons)
        assert (RULE in placed.reasons) == (group in net.illegal)


@given(drawn())
def test_regions_one_after_another_compute_what_the_graph_does(net: Drawn) -> None:
    inputs = {
        value: np.array([7, -2, 100 * place, 3], np.int32)
        for place, value in enumerate(net.graph.inputs)
    }
    whole = evaluate(net.graph, list(inputs.values()))
    parts = by_parts(net.graph, net.placed().regions, inputs)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


@given(drawn())
def test_no_fewer_regions_are_possible(net: Drawn) -> None:
    found = net.placed()
    on_cpu = {group for group, row in found.groups.items() if row.device is CPU}
    longest = _longest_alternation(net, on_cpu)
    assert sum(region.device is NPU for region in found.regions) == longest


def _longest_alternation(net: Drawn, on_cpu: set[int]) -> int:
    """Count the NPU regions that some path needs, whatever the others do."""
    entered: dict[int, int] = {}
    for group in net.groups:
        rows = [row for row in net.graph if row.group == group and row.kind != "CONST"]
        before = {
            value.producer.group
            for row in rows
            for value in row.operands
            if value.producer is not None and value.constant is None
        } - {group}
        entered[group] = max(
            (
                entered[other] + (group not in on_cpu and other in on_cpu)
                for other in before
                if other is not None
            ),
            default=int(group not in on_cpu),
        )
        if group not in on_cpu:
            entered[group] = max(entered[group], 1)
    return max(entered.values())


def test_what_could_run_early_or_late_runs_where_less_is_moved() -> None:
    """Four numbers become a thousand for the second region: it makes them itself."""
    graph = Graph()
    small = TensorType((1, 4), DType.INT8)
    b = Builder(graph, group=0)
    first = b("REVERSE", graph.add_input(small), axis=1)
    (between,) = Builder(graph, group=1).custom("torch.between", [first], [small])
    b = Builder(graph, group=2)
    repeated = b("TILE", graph.add_input(small), b.shape([256, 1]))
    b = Builder(graph, group=3)
    graph.set_outputs([b("CONCAT", repeated, between, axis=0)])
    found = partition(
        graph,
        lambda row: (RULE,) if row.kind == "CUSTOM" else (),
        edge=lambda row: row.kind == "CUSTOM",
    )
    assert found.regions == (Region(NPU, (0,)), Region(CPU, (1,)), Region(NPU, (2, 3)))


def test_what_the_code_generator_refused_is_on_the_cpu_with_its_words() -> None:
    graph, (first, second) = _two_convolutions()
    refused = Reason("compiler", "Vela stops at it")
    found = partition(graph, nothing, refused={second: refused})
    assert found.groups[second].reasons == (refused,)
    assert found.regions == (Region(NPU, (first,)), Region(CPU, (second,)))


def test_a_group_with_one_illegal_operation_is_on_the_cpu_as_a_whole() -> None:
    graph, (first, second) = _two_convolutions()

    def legal(operation: Operation) -> tuple[Reason, ...]:
        return (RULE,) if operation.kind == "CLAMP" and operation.group == first else ()

    found = partition(graph, legal)
    assert _places(found) == {first: CPU, second: NPU}
    assert found.groups[first].reasons == (RULE,)  # told once, though two operations broke it


def test_macs_are_those_of_the_whole_group() -> None:
    graph, groups = _two_convolutions()
    # 8 x 8 results of 4 channels, each of 9 x 4 products
    macs = 8 * 8 * 4 * 9 * 4
    found = partition(graph, nothing)
    assert [found.groups[group].macs for group in groups] == [macs, macs]


def test_little_work_between_operators_of_the_cpu_is_left_to_it() -> None:
    found = partition(*_between_customs("REVERSE"))
    assert _places(found) == {0: CPU, 1: CPU, 2: CPU}
    assert found.groups[1].reasons == (TRANSFERS,)
    assert [region.device for region in found.regions] == [CPU]


def test_much_work_between_operators_of_the_cpu_is_not() -> None:
    assert _places(partition(*_between_customs("MATMUL"))) == {0: CPU, 1: NPU, 2: CPU}


def test_little_work_between_the_edges_of_the_model_stays_on_the_npu() -> None:
    """The host converts there whatever is done, so nothing is saved."""
    graph, legal = _between_customs("REVERSE")
    found = partition(graph, legal, edge=lambda row: row.kind == "CUSTOM")
    assert _places(found) == {0: CPU, 1: NPU, 2: CPU}


def _places(found: Partition) -> dict[int, Device]:
    return {group: row.device for group, row in found.groups.items()}


def _two_convolutions() -> tuple[Graph, tuple[int, int]]:
    """[1,8,8,4] of 8 bits through two convolutions of 3 x 3, each a group with two CLAMPs."""
    graph = Graph()
    value = graph.add_input(TensorType((1, 8, 8, 4), DType.INT8))
    for group in (0, 1):
        b = Builder(graph, group=group)
        weight = b.constant(np.ones((4, 3, 3, 4)), DType.INT8)
        zero = b.constant([0], DType.INT8)
        bias = b.constant([0] * 4, DType.INT32)
        value = b(
            "CONV2D", value, weight, bias, zero, zero, pad=(1, 1, 1, 1), stride=(1, 1)
        )  # [1,8,8,4] of 32 bits
        value = b("CAST", value, dtype=DType.INT8)
        value = b("CLAMP", value, min_val=-8, max_val=8)
        value = b("CLAMP", value, min_val=-4, max_val=4)
    graph.set_outputs([value])
    return graph, (0, 1)


def _between_customs(kind: str) -> tuple[Graph, Callable[[Operation], Sequence[Reason]]]:
    """[1,16,16] of 8 bits through PyTorch, an operation, and PyTorch again."""
    graph = Graph()
    plane = TensorType((1, 16, 16), DType.INT8)
    (value,) = Builder(graph, group=0).custom("torch.first", [graph.add_input(plane)], [plane])
    b = Builder(graph, group=1)
    if kind == "MATMUL":
        zero = b.constant([0], DType.INT8)
        value = b("CAST", b("MATMUL", value, value, zero, zero), dtype=DType.INT8)
    else:
        value = b("REVERSE", value, axis=1)
    (value,) = Builder(graph, group=2).custom("torch.last", [value], [plane])
    graph.set_outputs([value])
    return graph, lambda operation: (RULE,) if operation.kind == "CUSTOM" else ()
