"""Checking: what is allowed decides, and every operator is told about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.memory import memory_report
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report import Device

ModelFile = Callable[[str], Path]


def accumulating(kept: int) -> bytes:
    """Add to a state of `kept` bytes, which the processor reads and assigns."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, kept), np.int8, 0.5)
    held = net.resource("total")
    net.operator("VAR_HANDLE", [], [held], ("VarHandleOptions", {"shared_name": "total"}))
    before, after = (net.tensor(name, (1, kept), np.int8, 0.5) for name in ("before", "after"))
    net.operator("READ_VARIABLE", [held], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [x, before], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [held, after], [], ("AssignVariableOptions", {}))
    net.initial("total", np.zeros((1, kept), np.int8), 0.5)
    return net.finish([x], [after])


def test_a_network_that_fits(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", sram_budget=22_656)
    assert found.holds
    assert not found.failures
    assert all(row.device is Device.NPU for row in found.placements)
    assert found.compilation.macs == found.compilation.macs_on_npu == 2_656_768


@pytest.mark.usefixtures("velas_code")
def test_one_byte_too_many(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", sram_budget=22_655)
    assert not found.holds
    assert [failure.render() for failure in found.failures] == [
        "error[E402]: the network may use 22655 bytes of SRAM, but needs 22656 (arena 22272, "
        "runtime 384): 1 too many; alive at the peak, operation 7 (OP_CONV "
        'functional_1/activation_2/Relu): "functional_1/activation_1/Relu" 8000, '
        '"functional_1/activation_2/Relu" 8000, "weights of functional_1/activation_2/Relu" 4752, '
        '"ethos-u while it runs" 80\n'
        "  rule --sram-budget\n"
        "  help --optimise Size fits: it needs 16464 bytes"
    ]
    smaller = mizzen.check(path, "ethos-u55-128", sram_budget=16_464, optimise="Size")
    assert smaller.holds


@pytest.mark.usefixtures("velas_code")
def test_constants_in_the_sram_count(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    found = mizzen.check(path, "ethos-u55-128", memory_mode="Sram_Only", sram_budget=40_000)
    (failure,) = found.failures
    assert found.artifact is not None
    file_bytes = len(found.artifact.data)  # the interpreter reads all of it where it lies
    needed = f"needs {16464 + file_bytes} (arena 16080, runtime 384, constants {file_bytes})"
    assert needed in failure.message
    assert failure.help == "--memory-mode Shared_Sram fits: it needs 22656 bytes"


@pytest.mark.usefixtures("velas_code")
def test_the_cache_counts_where_feature_maps_are_elsewhere(model_file: ModelFile) -> None:
    found = mizzen.check(model_file("kws_ref_model.tflite"), "ethos-u65-512", sram_budget=1)
    (failure,) = found.failures
    assert "needs 22192 (cache 22192)" in failure.message
    assert failure.help == "--arena-cache-size 1 fits: it needs 0 bytes"


def test_states_on_the_cpu_count(tmp_path: Path) -> None:
    path = tmp_path / "states.tflite"
    path.write_bytes(accumulating(5_120))
    kept = ["READ_VARIABLE", "ASSIGN_VARIABLE"]
    found = mizzen.check(path, "ethos-u55-128", max_cpu_ops=None, sram_budget=1024, ignore_ops=kept)
    (failure,) = found.failures
    assert failure.code == "E402"
    assert "runtime with states of 5120 in it" in failure.message
    assert '"total" 5120' in failure.message
    assert found.artifact is not None
    needed = memory_report(found.artifact).by_memory["Sram"]
    assert mizzen.check(
        path, "ethos-u55-128", max_cpu_ops=None, sram_budget=needed, ignore_ops=kept
    ).holds


def test_networks_without_npu_count(model_file: ModelFile) -> None:
    every = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SOFTMAX", "AVERAGE_POOL_2D",
             "RESHAPE")  # fmt: skip
    found = mizzen.check(
        model_file("kws_ref_model.tflite"), "ethos-u55-128", max_cpu_ops=None, ignore_ops=every,
        sram_budget=22_783,
    )  # fmt: skip
    assert not found.compilation.on_npu
    (failure,) = found.failures
    assert "needs 22784" in failure.message  # the arena of the same network on a Cortex-M33


def test_operators_on_the_cpu_beyond_the_allowance(model_file: ModelFile) -> None:
    path = model_file("audio_preprocessor_int8.tflite")
    found = mizzen.check(path, "ethos-u55-128")
    count = len(found.compilation.on_cpu)
    assert 0 < count < 22
    assert [failure.render() for failure in found.failures] == [
        f"error[E401]: at most 0 of 22 operators may be on the CPU, but {count} are\n"
        "  rule --max-cpu-ops\n"
        "  help change the network as each operator's reason says, or allow more"
    ]
    assert not mizzen.check(path, "ethos-u55-128", max_cpu_ops=count - 1).holds
    assert mizzen.check(path, "ethos-u55-128", max_cpu_ops=count).holds
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


def test_the_report_is_ready_for_json(model_file: ModelFile) -> None:
    found = mizzen.check(model_file("hello_world_int8.tflite"), sram_budget=16)
    document = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert document["holds"] is False
    assert document["sram_budget_bytes"] == 16
    assert document["max_cpu_ops"] == 0
    assert document["failures"][0]["code"] == "E402"
    assert [row["kind"] for row in document["operators"]] == ["FULLY_CONNECTED"] * 3
