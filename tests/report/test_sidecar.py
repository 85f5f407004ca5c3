"""The report as a file: everything comes back, and a stray file does no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import Diagnostic, Origin, Reason, Severity
from mizzen.report import (
    Area,
    CompileReport,
    Device,
    Measure,
    OperatorPlacement,
    read_sidecar,
    sidecar,
    sidecar_path,
)
from mizzen.report.board_figures import BoardFigures
from mizzen.report.compilation import as_dict, from_dict
from mizzen.report.cost import InferenceTime
from mizzen.report.energy import EnergyFigure, InferenceEnergy

ARTIFACT = b"the artifact"


def make_report() -> CompileReport:
    origin = Origin("net.tflite", 3, "CONV_2D", 'a "quoted" näme')
    return CompileReport(
        model="net.tflite",
        configuration={
            "accelerator": "ethos-u55-128",
            "settings": [{"name": "x", "value": 1.5, "source": "vela.ini"}],
        },
        compiler="Vela 5.2.0",
        placements=(
            OperatorPlacement(0, "CONV_2D", "conv", Device.NPU, 1000, 20),
            OperatorPlacement(
                1, "CAST", "cast", Device.CPU, 0, 0, (Reason("a", "b", "c", "d", "e", "f"),)
            ),
            OperatorPlacement(2, "FULLY_CONNECTED", "dense", Device.CPU, 24, 0),
        ),
        arena_bytes=4096,
        flash_bytes=2048,
        areas=(
            Area("constants", "Dram", 900),
            Area("arena", "Dram", 70),
            Area("cache", "Sram", 300),
        ),
        memories=(Measure("Sram", 300, 12, {"Weights": (1, 2)}),),
        time=InferenceTime(33, 20, 12, 5e8, "cortex-m55", 0, 2.5e8),
        energy=InferenceEnergy(0.2, 0.1, 0.4, {"idle": 0.15, "mac": 0.05}, ("a trace",)),
        board_figures=BoardFigures(
            "a board", 5e8, "cortex-m55", 2.5e8, (EnergyFigure("mac", 0.4, 2.0, "a trace"),)
        ),
        figures={"macCount": 1000},
        origins=({16: origin, 32: origin}, {}),
        diagnostics=(
            Diagnostic("W305", "text", Severity.WARNING, origin, "rule", "help"),
            Diagnostic("N301", "note", Severity.NOTE),
        ),
        log="not kept",
    )


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "net_vela.tflite"
    path.write_bytes(ARTIFACT)
    return path


def written(report: CompileReport, artifact: Path) -> Path:
    path = sidecar_path(artifact)
    path.write_bytes(sidecar(report, artifact.read_bytes()))
    return path


def test_totals() -> None:
    report = make_report()
    assert [row.index for row in report.on_npu] == [0]
    assert [row.index for row in report.on_cpu] == [1, 2]
    assert (report.macs, report.macs_on_npu) == (1024, 1000)
    assert report.sram_bytes == 300


def test_a_report_comes_back(artifact: Path) -> None:
    report = make_report()
    assert written(report, artifact) == artifact.with_name("net_vela.json")
    assert read_sidecar(artifact, ARTIFACT) == report


def test_the_file_is_json_with_totals(artifact: Path) -> None:
    document = json.loads(written(make_report(), artifact).read_text())
    assert document["version"] == 2
    assert document["totals"] == {
        "operators": 3,
        "operators_on_npu": 1,
        "macs": 1024,
        "macs_on_npu": 1000,
        "sram_bytes": 300,
    }
    assert document["operators"][1]["region"] == "CPU"
    assert document["diagnostics"][0]["at"] == (
        'net.tflite, operator 3 CONV_2D -> "a "quoted" näme"'
    )
    assert "log" not in document


def test_no_file_is_no_report(artifact: Path) -> None:
    assert read_sidecar(artifact, ARTIFACT) is None


def test_the_report_of_other_bytes_is_passed_over(artifact: Path) -> None:
    written(make_report(), artifact)
    assert read_sidecar(artifact, ARTIFACT + b"!") is None


@pytest.mark.parametrize(
    "change",
    [{"cycles": 10**400}, {"arena_bytes": -(10**30)}, {"model": "x\0"}],
    ids=["cycles", "bytes", "name"],
)
def test_what_no_network_has_is_passed_over(change: dict[str, Any], artifact: Path) -> None:
    path = written(make_report(), artifact)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert read_sidecar(artifact, ARTIFACT) is None


def test_another_version_is_passed_over(artifact: Path) -> None:
    path = written(make_report(), artifact)
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    assert read_sidecar(artifact, ARTIFACT) is None


@pytest.mark.parametrize(
    "settings",
    [7, [7], [{}], [{"name": "x", "value": 1}], [{"name": 1, "value": 1, "source": "y"}]],
)
def test_settings_that_nothing_could_show_are_passed_over(settings: Any, artifact: Path) -> None:
    path = written(make_report(), artifact)
    document = json.loads(path.read_text())
    document["configuration"]["settings"] = settings
    path.write_text(json.dumps(document))
    assert read_sidecar(artifact, ARTIFACT) is None


@pytest.mark.parametrize("key", ["accelerator", "system_config", "memory_mode", "optimise"])
def test_a_configuration_without_a_name_is_passed_over(key: str, artifact: Path) -> None:
    path = written(make_report(), artifact)
    document = json.loads(path.read_text())
    document["configuration"][key] = None
    path.write_text(json.dumps(document))
    assert read_sidecar(artifact, ARTIFACT) is None


@pytest.mark.parametrize(
    "contents", [b"", b"[]", b"null", b"{}", b'{"version": 2}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_stray_file_is_passed_over(artifact: Path, contents: bytes) -> None:
    sidecar_path(artifact).write_bytes(contents)
    assert read_sidecar(artifact, ARTIFACT) is None


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to everything in a document."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


DOCUMENT: dict[str, Any] = json.loads(json.dumps(as_dict(make_report())))
OTHERS = st.sampled_from([None, -1, 1.5, "text", [], {}, [1], {"a": 1}, True])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(places(DOCUMENT)), other=OTHERS)
def test_a_changed_document_is_a_report_or_refused(place: tuple[Any, ...], other: Any) -> None:
    """No other exception, and no value of another type than the report's own."""
    document = json.loads(json.dumps(DOCUMENT))
    if not place:
        return
    owner = document
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = other
    try:
        report = from_dict(document)
    except (KeyError, TypeError, ValueError, AttributeError):
        return
    assert isinstance(report.cycles, int)
    assert report.energy is None or all(
        isinstance(mj, float) for mj in (report.energy.mj, *report.energy.parts_mj.values())
    )
    assert all(isinstance(row.name, str) and isinstance(row.macs, int) for row in report.placements)
    assert all(isinstance(area.used_bytes, int) for area in report.areas)
