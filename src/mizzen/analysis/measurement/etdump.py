"""Measurements of an ETDump: what each instruction of a program took, run by run.

An instruction is a call of a kernel, whose name a second event of it has, or of a delegate. Where
the delegate says by an event of its own how long the NPU took, that counts.

Ref: ExecuTorch 1.5, runtime/executor/method.cpp (OPERATOR_CALL, DELEGATE_CALL),
codegen/gen.py (native_call_*), backends/arm/runtime/EthosUBackend.cpp (events of the delegate).
"""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.measurement.formats import Format
from mizzen.analysis.measurement.reading import (
    MOST_MEASUREMENTS,
    MOST_OPERATORS,
    Measurement,
    OperatorTime,
)
from mizzen.flatbuffer.etdump import read_etdump
from mizzen.flatbuffer.reader import Record

KERNEL, DELEGATE, NAMED = "OPERATOR_CALL", "DELEGATE_CALL", "native_call_"
NPU_EVENT = "EthosUBackend::execute()NPU"


def read_events(data: bytes, file: str) -> tuple[Measurement, ...]:
    """Return a measurement for each run of a dump that has instructions.

    E101 for a file of another format, E102 for a damaged one.
    """
    runs = read_etdump(data, file)["run_data"] or ()
    found: list[Measurement] = []
    for number, run in enumerate(runs[:MOST_MEASUREMENTS], 1):
        operators = tuple(_operators(run))
        if operators:
            found.append(Measurement(Format.ETDUMP, number, operators=operators))
    return tuple(found)


def _operators(run: Record) -> Iterator[OperatorTime]:
    calls: list[tuple[int, str, float]] = []
    names: dict[int, str] = {}
    inside: dict[int, float] = {}
    for event in (run["events"] or ())[:MOST_OPERATORS]:
        profile = event["profile_event"]
        if profile is None or not profile["name"]:
            continue
        name, instruction = profile["name"], profile["instruction_id"]
        ticks = float(max(0, profile["end_time"] - profile["start_time"]))
        if name in (KERNEL, DELEGATE):
            calls.append((instruction, name, ticks))
        elif name.startswith(NAMED):
            names[instruction] = name.removeprefix(NAMED)
        elif NPU_EVENT in (profile["delegate_debug_id_str"] or name):
            inside[instruction] = ticks
    for instruction, name, ticks in calls:
        if name == DELEGATE:
            yield OperatorTime(DELEGATE, inside.get(instruction, ticks), on_npu=True)
        else:
            yield OperatorTime(names.get(instruction, KERNEL), ticks, on_npu=False)
