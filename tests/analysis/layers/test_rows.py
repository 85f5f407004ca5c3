"""Layers: what operations cost, by the user's operators, adding up to the whole."""

from __future__ import annotations

import pytest

from mizzen.analysis.layers import layers
from mizzen.diagnostics import Device, Origin
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.cost import Bound, CostReport, OperationCost
from mizzen.report.layers import sorted_layers
from mizzen.report.memory import AreaUse, MemoryReport


def operation(index: int, operator: int | None, cycles: int, bound: Bound) -> OperationCost:
    origin = None if operator is None else Origin(operator=operator)
    start = 1000 * index
    return OperationCost(
        step=0, index=index, name="OP_CONV", device=Device.NPU, origin=origin,
        start_cycles=start, end_cycles=start + cycles, cycles=cycles, causes={bound: cycles},
        macs=10, macs_per_cycle=2, shape=f"1x1x{index} -> 1x1x1",
    )  # fmt: skip


COST = CostReport(
    "net", {}, 1e6, "", (
        operation(0, 0, 100, Bound.MAC),
        operation(1, None, 40, Bound.FLASH),
        operation(2, 2, 50, Bound.SRAM),
        operation(3, 2, 10, Bound.OUTPUT),
    )
)  # fmt: skip
REPORT = CompileReport(
    "net", {}, "", tuple(
        OperatorPlacement(index, kind, f"out{index}", Device.NPU, macs, 0)
        for index, (kind, macs) in enumerate([("CONV_2D", 100), ("RESHAPE", 0), ("SOFTMAX", 0)])
    ), 0, 0, (), (),
)  # fmt: skip
MEMORY = MemoryReport(
    "net", ("a", "b", "c", "d"), (), (
        AreaUse("arena", "Sram", 90, (10, 20, 30, 90), 3),
        AreaUse("constants", "OffChipFlash", 7, (7, 7, 7, 7), 0),
        AreaUse("runtime", "Sram", 5, (5, 5, 5, 5), 0),
    ), None, 0,
)  # fmt: skip


def test_an_operator_is_the_sum_of_its_operations() -> None:
    conv, reshape, softmax, rest = layers(REPORT, COST, MEMORY)
    assert (conv.cycles, conv.share, conv.sram_bytes) == (100, 0.5, 15)
    assert (softmax.cycles, softmax.operations, softmax.sram_bytes) == (60, (2, 3), 95)
    assert softmax.causes == {Bound.SRAM: 50, Bound.OUTPUT: 10}
    assert softmax.bound is Bound.SRAM
    assert softmax.shape == "1x1x2 -> 1x1x1"
    assert (reshape.cycles, reshape.bound, reshape.sram_bytes) == (0, None, None)
    assert (rest.index, rest.kind, rest.cycles) == (None, "transfers", 40)


def test_the_rows_add_up_to_the_inference() -> None:
    rows = layers(REPORT, COST)
    assert sum(row.cycles for row in rows) == COST.cycles == 200
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_without_a_memory_report_nothing_is_said_of_memory() -> None:
    assert {row.sram_bytes for row in layers(REPORT, COST)} == {None}


def test_utilisation_is_of_the_time_at_work() -> None:
    assert layers(REPORT, COST)[0].utilisation == 100 / (2 * 100)


@pytest.mark.parametrize(
    ("order", "first"),
    [(None, "CONV_2D"), ("cycles", "CONV_2D"), ("sram", "SOFTMAX"), ("utilisation", "CONV_2D")],
)
def test_sorted(order: str | None, first: str) -> None:
    assert next(sorted_layers(layers(REPORT, COST, MEMORY), order)).kind == first


def test_those_without_time_come_last() -> None:
    kinds = [row.kind for row in sorted_layers(layers(REPORT, COST), "cycles")]
    assert kinds == ["CONV_2D", "SOFTMAX", "transfers", "RESHAPE"]
