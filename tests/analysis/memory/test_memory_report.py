"""What artifacts keep in memory, against what Vela counts, the simulator writes, files have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.analysis.memory import memory_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.memory import Allocation, MemoryReport, Use
from mizzen.targets.ethos_u.machine.driver import parse
from mizzen.targets.ethos_u.machine.system_config import resolve

ROOT = Path(__file__).resolve().parents[3]
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
STATES = 1024

pytestmark = pytest.mark.filterwarnings("ignore::mizzen.diagnostics.MizzenWarning")


ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")


@pytest.fixture(scope="module", params=ACCELERATORS)
def digits(request: pytest.FixtureRequest) -> Artifact:
    return mizzen.compile(DIGITS, request.param, prove="off")


def area(report: MemoryReport, name: str) -> Any:
    return next(row for row in report.areas if row.area == name)


def of_use(report: MemoryReport, use: Use) -> list[Allocation]:
    return [row for row in report.allocations if row.use is use]


def counting(kept: int = STATES) -> bytes:
    """Add to a state of `kept` bytes, which the processor reads and assigns."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, kept), np.int8, 0.5)
    held = net.resource("total")
    net.operator("VAR_HANDLE", [], [held], ("VarHandleOptions", {"shared_name": "total"}))
    before, after = (net.tensor(name, (1, kept), np.int8, 0.5) for name in ("before", "after"))
    net.operator("READ_VARIABLE", [held], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [x, before], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [held, after], [], ("AssignVariableOptions", {}))
    net.initial("total", np.full((1, kept), 7, np.int8), 0.5)
    return net.finish([x], [after])


def written(step: NpuStep, region: int) -> np.ndarray[Any, Any]:
    """Return which bytes of a region an inference changes, for one of two things that lay there."""
    sizes = step.program.region_bytes
    found = np.zeros(sizes.get(region, 0), np.bool_)
    for fill in (0x00, 0xFF):
        regions = {
            index: np.full((1, size), fill, np.uint8) for index, size in sizes.items() if index
        }
        if region not in regions:
            return found
        before = {index: row.copy() for index, row in regions.items()}
        step.simulator.run_in(regions, 1)
        found |= (regions[region] != before[region])[0]
    return found


def covered(report: MemoryReport, name: str, size: int) -> np.ndarray[Any, Any]:
    found = np.zeros(size, np.bool_)
    for row in report.allocations:
        if row.area == name and row.address is not None and row.use is not Use.INPUT:
            found[row.address : row.address + row.size_bytes] = True
    return found


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_the_peak_of_what_is_alive_is_what_vela_counts(accelerator: str) -> None:
    vela = {"generator": "vela"}
    digits = mizzen.compile(DIGITS, accelerator, prove="off", target_options=vela)
    report = memory_report(digits)
    assert digits.report is not None
    counted = {row.memory: row.used_bytes for row in digits.report.memories}
    name = "cache" if any(row.area == "cache" for row in report.areas) else "arena"
    constants = area(report, "constants")
    most = counted["Sram"]
    if constants.memory == "Sram":  # weights count with feature maps there
        (step,) = (row for row in digits.steps if isinstance(row, NpuStep))
        most -= step.program.region_bytes[0]
    kernels = sum(
        row.size_bytes for row in report.allocations if row.name == "ethos-u while it runs"
    )
    peak = max(area(report, name).live_bytes) - (kernels if name == "arena" else 0)
    assert most * 0.85 <= peak <= most


def test_every_byte_that_is_written_is_somebodys(digits: Artifact) -> None:
    report = memory_report(digits)
    (step,) = (row for row in digits.steps if isinstance(row, NpuStep))
    for region, name in ((1, "arena"), (2, "cache")):
        changed = written(step, region)
        known = covered(report, name, max(changed.size, area(report, "arena").used_bytes))
        assert not np.any(changed & ~known[: changed.size]), name
        assert changed.any() or region == 2


def test_operations_are_those_of_the_cost_report(digits: Artifact) -> None:
    report, cost = memory_report(digits), cost_report(digits)
    assert len(report.operations) == len(cost.operations)
    for name, row in zip(report.operations, cost.operations, strict=True):
        assert name.split(" ")[0] == row.name
    last = len(report.operations) - 1
    assert all(0 <= row.first <= row.last <= last for row in report.allocations)
    assert all(len(row.live_bytes) == last + 1 for row in report.areas)


def test_constants_are_the_bytes_of_the_file(digits: Artifact) -> None:
    report = memory_report(digits)
    rows = of_use(report, Use.CONSTANTS)
    (stream,) = (row for row in rows if row.name == "command stream")
    assert stream.address is not None
    payload = digits.data[stream.address : stream.address + stream.size_bytes]
    (step,) = (row for row in digits.steps if isinstance(row, NpuStep))
    assert np.array_equal(parse(payload).words, step.program.words)
    read_only = step.program.constants[0].tobytes()
    weights = [row for row in rows if row is not stream]
    assert sum(row.size_bytes for row in weights) >= len(read_only)
    assert any(row.name.startswith("weights of ") for row in weights)
    assert sum(row.size_bytes for row in rows) == report.file_bytes == len(digits.data)


def test_arena_and_runtime_are_one_arena(digits: Artifact) -> None:
    report = memory_report(digits)
    both = area(report, "arena").used_bytes + area(report, "runtime").used_bytes
    assert both == report.arena_bytes
    assert sum(report.by_memory.values()) == sum(row.used_bytes for row in report.areas)


def test_inputs_and_outputs_have_their_names_and_sizes(digits: Artifact) -> None:
    report = memory_report(digits)
    (given,), (found,) = of_use(report, Use.INPUT), of_use(report, Use.OUTPUT)
    assert (given.name, given.size_bytes) == (digits.inputs[0].name, digits.inputs[0].size_bytes)
    assert given.first == 0
    assert found.last == len(report.operations) - 1
    assert (found.name, found.size_bytes) == (digits.outputs[0].name, digits.outputs[0].size_bytes)


def test_state_on_the_processor_is_there_all_the_time() -> None:
    kept = ["READ_VARIABLE", "ASSIGN_VARIABLE"]
    report = memory_report(
        mizzen.compile(counting(), "ethos-u55-128", prove="off", ignore_ops=kept)
    )
    (state,) = of_use(report, Use.STATE)
    assert state.name == "total"
    assert (state.first, state.last) == (0, len(report.operations) - 1)
    assert state.size_bytes == STATES
    assert report.by_memory["Sram"] >= 3 * STATES
    assert report.arena_bytes == report.by_memory["Sram"]


def remembering(channels: int = 4, units: int = 8, kept: int = 16) -> bytes:
    """Filter the last `kept` inputs on the processor: tensors without names, one of them state."""
    net = NetworkBuilder()
    x = net.tensor("", (1, channels), np.int8, 0.5)
    features = net.constant("", np.ones((units, channels), np.int8), 0.5)
    times = net.constant("", np.ones((units, kept), np.int16), 0.25)
    bias = net.constant("", np.zeros(units, np.int32), 0.25)
    state = net.tensor("", (1, kept * units), np.int16, 0.25, variable=True)
    y = net.tensor("", (1, units), np.int8, 0.5)
    net.operator("SVDF", [x, features, times, bias, state], [y], ("SVDFOptions", {"rank": 1}))
    return net.finish([x], [y])


def test_a_tensor_that_is_state_on_the_processor_is_counted_once() -> None:
    report = memory_report(artifact_of(remembering(), "remembering.tflite"))
    (state,) = of_use(report, Use.STATE)
    assert state.size_bytes == 2 * 8 * 16
    assert state.name == "tensor 4"
    assert (state.first, state.last) == (0, len(report.operations) - 1)
    assert report.arena_bytes == sum(area(report, name).used_bytes for name in ("arena", "runtime"))
    assert all(row.name for row in report.allocations)


def test_state_in_the_npus_arena_is_counted_once(model_file: Callable[[str], Path]) -> None:
    artifact = mizzen.compile(model_file("rnnoise_INT8.tflite"), "ethos-u55-128", prove="off")
    report = memory_report(artifact)
    states = of_use(report, Use.STATE)
    sizes = [
        int(np.prod(row.shape)) * row.dtype.itemsize
        for step in artifact.steps
        if isinstance(step, NpuStep)
        for row in step.variables
    ]
    assert sorted(row.size_bytes for row in states) == sorted(sizes)
    assert all((row.first, row.last) == (0, len(report.operations) - 1) for row in states)


def test_processor_and_npu_share_the_arena(model_file: Callable[[str], Path]) -> None:
    artifact = mizzen.compile(
        model_file("audio_preprocessor_int8.tflite"), "ethos-u55-128", prove="off"
    )
    report = memory_report(artifact)
    of_npu = artifact.report.arena_bytes if artifact.report is not None else None
    assert of_npu is not None
    assert report.arena_bytes is not None
    assert report.arena_bytes > of_npu
    assert len(report.operations) == len(cost_report(artifact).operations)
    kernels = {row.name for row in report.allocations if row.use is Use.CPU}
    assert "SignalRfft while it runs" in kernels
    assert all(row.address is not None for row in report.allocations if row.area == "arena")


def test_weights_of_the_processor_are_constants() -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 8), np.float32) for name in "xy")
    w = net.constant("w", np.ones((1, 8), np.float32))
    net.operator("ADD", [x, w], [y], ("AddOptions", {}))
    network = net.finish([x], [y])
    report = memory_report(artifact_of(network, "net.tflite"))
    constant = next(row for row in of_use(report, Use.CONSTANTS) if row.address is not None)
    assert (constant.name, constant.size_bytes) == ("w", 32)
    assert network[constant.address :][:4] == np.float32(1).tobytes()


def test_a_configuration_of_another_npu_is_refused(digits: Artifact) -> None:
    other = resolve("ethos-u55-256")
    with pytest.raises(MizzenError) as caught:
        memory_report(digits, configuration=other)
    assert caught.value.diagnostic.code == "E440"


def test_memories_are_those_of_the_configuration() -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u65-256", prove="off")
    here = {row.area: row.memory for row in memory_report(artifact).areas}
    assert here == {"arena": "Dram", "cache": "Sram", "runtime": "Dram", "constants": "Dram"}
    embedded = resolve(
        "ethos-u65-256", system_config="Ethos_U65_Embedded", memory_mode="Shared_Sram"
    )
    there = memory_report(artifact, configuration=embedded)
    assert {row.area: row.memory for row in there.areas}["arena"] == "Sram"


def test_an_ethos_n_keeps_its_data_in_dram(model_file: Callable[[str], Path]) -> None:
    artifact = mizzen.compile(
        model_file("hello_world_int8.tflite"), "ethos-n78-4tops-2ple", prove="off"
    )
    report = memory_report(artifact)
    assert {row.memory for row in report.areas} == {"Dram"}
    assert report.arena_bytes is None
    assert len(report.operations) == len(cost_report(artifact).operations)
