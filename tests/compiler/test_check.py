"""Checking: what is allowed decides, and every operator is told about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mizzen
from mizzen.report import Device

ModelFile = Callable[[str], Path]


def test_a_network_that_fits(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", sram_budget=22_192)
    assert found.holds
    assert not found.failures
    assert all(row.device is Device.NPU for row in found.placements)
    assert found.compilation.macs == found.compilation.macs_on_npu == 2_656_768


def test_one_byte_too_many(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", sram_budget=22_191)
    assert not found.holds
    assert [failure.render() for failure in found.failures] == [
        "error[E402]: the network may use 22191 bytes of SRAM, but needs 22192 (arena 22192): "
        "1 too many\n"
        "  rule --sram-budget\n"
        "  help optimise for size, or choose a memory mode with constants outside the SRAM"
    ]


def test_constants_in_the_sram_count(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", memory_mode="Sram_Only", sram_budget=40_000)
    (failure,) = found.failures
    assert "needs 47088 (constants 31088, arena 16000)" in failure.message


def test_the_cache_counts_where_feature_maps_are_elsewhere(model_file: ModelFile) -> None:
    found = mizzen.check(model_file("kws_ref_model.tflite"), "ethos-u65-512", sram_budget=1)
    (failure,) = found.failures
    assert "needs 22192 (cache 22192)" in failure.message


def test_operators_on_the_cpu_beyond_the_allowance(model_file: ModelFile) -> None:
    path = model_file("audio_preprocessor_int8.tflite")
    found = mizzen.check(path, "ethos-u55-128")
    assert [failure.render() for failure in found.failures] == [
        "error[E401]: at most 0 of 22 operators may be on the CPU, but 20 are\n"
        "  rule --max-cpu-ops\n"
        "  help change the network as each operator's reason says, or allow more"
    ]
    assert not mizzen.check(path, "ethos-u55-128", max_cpu_ops=19).holds
    assert mizzen.check(path, "ethos-u55-128", max_cpu_ops=20).holds
    assert mizzen.check(path, "ethos-u55-128", max_cpu_ops=None).holds


def test_macs_on_the_cpu_are_told(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", ignore_ops=["FULLY_CONNECTED"])
    (failure,) = found.failures
    assert failure.message == (
        "at most 0 of 13 operators may be on the CPU, but 1 is with 768 of 2656768 MACs"
    )


def test_every_operator_on_the_cpu_has_a_reason_and_advice(model_file: ModelFile) -> None:
    found = mizzen.check(model_file("audio_preprocessor_int8.tflite"), "ethos-u65-256")
    for row in found.placements:
        assert bool(row.reasons) == (row.device is Device.CPU)
        for reason in row.reasons:
            assert reason.message
            assert reason.help
            assert reason.source.startswith("Vela 5.2.0")
            assert reason.limit
            assert reason.actual


def test_the_report_is_ready_for_json(model_file: ModelFile) -> None:
    found = mizzen.check(model_file("hello_world_int8.tflite"), sram_budget=16)
    document = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert document["holds"] is False
    assert document["sram_budget_bytes"] == 16
    assert document["max_cpu_ops"] == 0
    assert document["failures"][0]["code"] == "E402"
    assert [row["kind"] for row in document["operators"]] == ["FULLY_CONNECTED"] * 3
