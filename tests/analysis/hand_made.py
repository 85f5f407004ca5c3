"""Findings made by hand: a small network whose every number is known, and a large one."""

from __future__ import annotations

from mizzen.analysis.findings import Findings, Stream, Work
from mizzen.diagnostics import Device, Origin, Reason
from mizzen.isa import Kind
from mizzen.isa.listing import Line
from mizzen.report import Area, CompileReport, OperatorPlacement
from mizzen.report.cost import Bound, CostReport, OperationCost, Purpose, Span, Traffic, Unit
from mizzen.report.memory import Allocation, AreaUse, MemoryReport, Use
from mizzen.report.proof import Proof

CONFIGURATION = {
    "accelerator": "ethos-u55-128",
    "system_config": "Ethos_U55_High_End_Embedded",
    "memory_mode": "Shared_Sram",
    "settings": [{"name": "core_clock", "value": 500e6, "source": "by hand"}],
}
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "ADD")


def small() -> Findings:
    """Return a convolution, a depthwise one, their sum, and a softmax on the CPU."""
    return findings(4)


def findings(operators: int) -> Findings:
    """Return a network of `operators`, the last one on the CPU.

    Operator i takes 100 * (i + 1) cycles, after what is before it; every third also takes the
    result before that one.
    """
    rows = [_placement(index, operators) for index in range(operators)]
    costs = [_cost(row, sum(100 * (i + 1) for i in range(row.index))) for row in rows]
    configuration = {name: str(CONFIGURATION[name]) for name in CONFIGURATION if name != "settings"}
    return Findings(
        "hand_vela.tflite",
        "ethos-u55-128",
        (),
        (),
        (_stream(rows[:-1]),),
        CompileReport(
            "hand.tflite", CONFIGURATION, "Vela 5.2.0", tuple(rows), 3072, 4096,
            (Area("arena", "Sram", 3072),), (), proof=Proof(16, 7, "ab" * 32, 1, 1, 3),
        ),
        CostReport(
            "hand.tflite", configuration, 500e6, "cortex-m55", tuple(costs),
            tuple(_span(row) for row in costs),
        ),
        _memory(operators),
        bytes_a_cycle={"Sram": 8.0},
    )  # fmt: skip


def _placement(index: int, operators: int) -> OperatorPlacement:
    before = (index - 1,) if index else ()
    last = index == operators - 1
    kind = "SOFTMAX" if last else KINDS[index % 3]
    reason = Reason("softmax", "SOFTMAX must have a beta of 1, and has 2", help="use a beta of 1")
    return OperatorPlacement(
        index, kind, f"net/layer_{index};fused", Device.CPU if last else Device.NPU,
        0 if last else 1_000 * (index + 1), 0 if last else 150, (reason,) if last else (),
        (index - 2, *before) if index % 3 == 2 else before,
    )  # fmt: skip


def _cost(row: OperatorPlacement, start: int) -> OperationCost:
    cycles = 100 * (row.index + 1)
    on_npu = row.device is Device.NPU
    command = 10 * row.index + 1 if on_npu else None
    name = f"OP_{row.kind}" if on_npu else row.kind
    causes = {Bound.MAC: cycles - 40, Bound.SRAM: 40} if on_npu else {Bound.CPU: cycles}
    traffic = (Traffic("Sram", "Axi0", Purpose.FEATURE_MAP, 300, 200),) if on_npu else ()
    return OperationCost(
        step=0 if on_npu else 1,
        index=row.index,
        name=name,
        device=row.device,
        origin=Origin("hand.tflite", row.index, row.kind, row.name, command),
        start_cycles=start,
        end_cycles=start + cycles,
        cycles=cycles,
        causes=causes,
        macs=row.macs,
        macs_per_cycle=128 if on_npu else 0,
        shape="8x8x3 -> 8x8x16",
        detail="block 8x8x8",
        traffic=traffic,
        processor_cycles=0 if on_npu else cycles,
    )


def _span(row: OperationCost) -> Span:
    unit = Unit.MAC if row.device is Device.NPU else Unit.CPU
    return Span(unit, row.index, row.start_cycles, row.end_cycles)


def _stream(rows: list[OperatorPlacement]) -> Stream:
    setting = "SET_IFM_UPSCALE"
    work = tuple(
        Work(
            0, 10 * row.index + 1, row.index,
            (
                Line(10 * row.index, (0x10107,), setting, Kind.SETTING, (("mode", "0"),), None),
                Line(10 * row.index + 1, (2,), f"OP_{row.kind}", Kind.OPERATION, (), None),
            ),
        )
        for row in rows
    )  # fmt: skip
    return Stream(0, "ethos-u55-128", 8 * len(rows), work, None)


def _memory(operators: int) -> MemoryReport:
    """Return two tensors of 1,024 bytes alive at a time, three where one is taken later."""
    rows = [
        Allocation(
            f"net/layer_{index};fused", "Sram", "arena", Use.FEATURE_MAP, 1024 * (index % 3), 1024,
            index, min(index + (2 if index % 3 == 0 else 1), operators - 1),
        )
        for index in range(operators)
    ]  # fmt: skip
    live = tuple(
        sum(row.size_bytes for row in rows if row.first <= at <= row.last)
        for at in range(operators)
    )
    area = AreaUse("arena", "Sram", 3072, live, live.index(max(live)))
    names = tuple(f"OP_{index}" for index in range(operators))
    return MemoryReport("hand.tflite", names, tuple(rows), (area,), 3_500, 4_096)
