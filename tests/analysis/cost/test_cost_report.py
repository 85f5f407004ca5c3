"""Cost reports of compiled networks: sums, systems, cores, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.cost import PROCESSORS, cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import Device, MizzenError
from mizzen.report.cost import Bound, CostReport
from mizzen.targets.ethos_u.machine.recorded_config import recorded
from mizzen.targets.ethos_u.machine.system_config import resolve

Compiled = Callable[[str, str], Artifact]


@pytest.fixture(scope="module")
def compiled(models: Path) -> Compiled:
    found: dict[tuple[str, str], Artifact] = {}

    def artifact(name: str, accelerator: str) -> Artifact:
        key = name, accelerator
        if key not in found:
            found[key] = mizzen.compile(models / f"{name}.tflite", accelerator)
        return found[key]

    return artifact


def require_sums(report: CostReport) -> None:
    for row in report.operations:
        assert sum(row.causes.values()) == row.cycles >= 0, row
        assert row.start_cycles <= row.end_cycles <= report.cycles, row
        assert 0 <= row.utilisation <= 1, row
    assert sum(report.causes.values()) == report.cycles == report.npu_cycles + report.cpu_cycles
    for span in report.spans:
        assert 0 <= span.start_cycles <= span.end_cycles <= report.cycles
    assert [row.index for row in report.operations] == list(range(len(report.operations)))


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
@pytest.mark.parametrize("network", ["kws_ref_model", "audio_preprocessor_int8"])
def test_cycles_add_up(compiled: Compiled, network: str, accelerator: str) -> None:
    report = cost_report(compiled(network, accelerator))
    require_sums(report)
    assert report.cycles > 0
    assert report.configuration["accelerator"] == accelerator


def test_passes_of_ethos_n_have_arms_estimate(compiled: Compiled) -> None:
    artifact = compiled("kws_ref_model", "ethos-n78-4tops-4ple")
    report = cost_report(artifact)
    require_sums(report)
    assert artifact.report is not None
    on_npu = [row for row in report.operations if row.device is Device.NPU]
    assert report.time == artifact.report.time
    assert {row.bound for row in on_npu} <= {Bound.DRAM, Bound.MAC, Bound.ROUNDING, Bound.OUTPUT}
    assert any(row.utilisation > 0 for row in on_npu)
    assert all(row.traffic for row in on_npu)


def test_multiplies_are_those_of_the_network(models: Path) -> None:
    """Of Vela's code: ours may have windows that reach over zeros, where that is faster."""
    vela = {"generator": "vela"}
    file = models / "kws_ref_model.tflite"
    artifact = mizzen.compile(file, "ethos-u55-128", prove="off", target_options=vela)
    assert artifact.report is not None
    made = sum(row.macs for row in cost_report(artifact).operations)
    assert made == artifact.report.macs


def test_a_stream_can_be_asked_about_in_another_system(compiled: Compiled) -> None:
    artifact = compiled("kws_ref_model", "ethos-u55-128")
    slow = resolve("ethos-u55-128", system_config="Ethos_U55_Deep_Embedded",
                     memory_mode="Shared_Sram")  # fmt: skip
    there = cost_report(artifact, configuration=slow)
    assert there.clock_hz == 200e6
    assert there.cycles > cost_report(artifact).cycles, "its flash has half the bandwidth"
    assert there.configuration["system_config"] == "Ethos_U55_Deep_Embedded"


def test_a_strangers_stream_is_timed_in_the_accelerators_default_system(
    compiled: Compiled,
) -> None:
    made = compiled("kws_ref_model", "ethos-u55-128")
    bare = cost_report(artifact_of(made.data, made.name))
    known = cost_report(made)
    assert bare.configuration["system_config"] == "Ethos_U55_High_End_Embedded"
    assert [row.cycles for row in bare.operations] == [row.cycles for row in known.operations]


@pytest.mark.parametrize(
    ("accelerator", "system", "mode"),
    [
        ("ethos-u55-64", "Ethos_U55_Deep_Embedded", "Shared_Sram"),
        ("ethos-u65-256", "Ethos_U65_Mid_End", "Dedicated_Sram_512KB"),
        ("ethos-u85-512", "Ethos_U85_SYS_DRAM_High", "Sram_Only"),
    ],
)
def test_a_report_holds_the_whole_system(accelerator: str, system: str, mode: str) -> None:
    asked = resolve(accelerator, system_config=system, memory_mode=mode)
    found = recorded(asked.as_dict())
    assert found is not None
    assert found.system == asked.system
    assert found.accelerator == asked.accelerator
    assert (found.mode.name, found.mode.constants, found.mode.arena, found.mode.cache) == (
        asked.mode.name, asked.mode.constants, asked.mode.arena, asked.mode.cache,
    )  # fmt: skip
    assert recorded({"accelerator": accelerator}) is None


def test_operators_on_the_cpu_cost_something_on_every_core(compiled: Compiled) -> None:
    artifact = compiled("audio_preprocessor_int8", "ethos-u55-128")
    for name in PROCESSORS:
        report = cost_report(artifact, processor=name)
        rows = [row for row in report.operations if row.device is Device.CPU]
        assert report.processor == name
        assert rows
        assert min(row.processor_cycles for row in rows) > 0


def test_cycles_of_the_cpu_are_the_npus_by_the_two_clocks(compiled: Compiled) -> None:
    artifact = compiled("audio_preprocessor_int8", "ethos-u55-128")
    same = cost_report(artifact)
    half = cost_report(artifact, processor_clock_hz=same.clock_hz / 2)
    assert half.npu_cycles == same.npu_cycles
    assert half.cpu_cycles == 2 * same.cpu_cycles


REFUSED: dict[str, Callable[[Artifact], CostReport]] = {
    "E570": lambda it: cost_report(it, configuration=resolve("ethos-u55-256")),
    "E571": lambda it: cost_report(it, processor="cortex-m54"),
    "E572": lambda it: cost_report(it, processor_clock_hz=0.0),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_does_not_suit_is_refused(compiled: Compiled, code: str) -> None:
    with pytest.raises(MizzenError) as raised:
        REFUSED[code](compiled("kws_ref_model", "ethos-u55-128"))
    assert raised.value.diagnostic.code == code


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-n78-4tops-4ple"])
def test_operations_are_of_the_model_not_of_the_artifact(
    model_file: Callable[[str], Path], accelerator: str
) -> None:
    """An operator on the CPU has another index in an artifact, which has fewer operators."""
    ignored = () if "n78" in accelerator else ("SOFTMAX",)
    path = model_file("kws_ref_model.tflite")
    artifact = mizzen.compile(path, accelerator, ignore_ops=ignored, prove="off")
    report = artifact.report
    assert report is not None
    kinds = {row.index: row.kind for row in report.placements}
    found = [row for row in cost_report(artifact).operations if row.origin is not None]
    on_cpu = {row.origin.operator for row in found if row.origin and row.device is Device.CPU}
    assert on_cpu == {row.index for row in report.on_cpu}
    assert all(kinds[row.origin.operator] == row.origin.kind for row in found
               if row.origin and row.origin.operator is not None)  # fmt: skip
    assert {row.origin.operator for row in found if row.origin} >= {1, 2, 3, 4, 11}
