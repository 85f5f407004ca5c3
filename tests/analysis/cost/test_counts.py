"""Estimates against counts of other hands: Arm's FVP, Vela's report, MLPerf Tiny on each core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.cost import PROCESSORS, cost_report
from mizzen.analysis.cost.cpu import CLASSES
from mizzen.analysis.cost.processors import Class
from mizzen.frontends.tflite import macs, read
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve

FVP = {
    # Arm's ML Embedded Evaluation Kit, docs/use_cases: cycles, beats of flash, of 8 bytes each
    "kws_micronet_m": (414_172, 17_544),
    "rnnoise_INT8": (104_514, 13_911),
    "yolo-fastest_192_face_v4": (2_051_194, 46_895),
}
FARTHEST = 0.08
"""The program that was counted is of an older compiler; `benchmarks/timing.py` says more."""


def kit() -> EthosUConfiguration:
    """Return the kit's memories: 50 words of flash in 400 cycles, in bursts of 8."""
    found = resolve("ethos-u55-128")
    flash = replace(found.system.axi1, clock_scale=56 / 400)
    return replace(found, system=replace(found.system, axi1=flash))


@pytest.mark.usefixtures("velas_code")
@pytest.mark.parametrize("network", FVP)
def test_cycles_and_flash_are_those_of_arms_model(
    model_file: Callable[[str], Path], network: str
) -> None:
    cycles, beats = FVP[network]
    artifact = mizzen.compile(model_file(f"{network}.tflite"), "ethos-u55-128")
    report = cost_report(artifact, configuration=kit())
    assert report.cycles == pytest.approx(cycles, rel=FARTHEST)
    flash = sum(row.read_bytes for row in report.traffic if row.port == "Axi1")
    assert flash / 8 == pytest.approx(beats, rel=0.02)


VELA = {
    # Operators in several slices are several operations here, and fill and drain for each.
    ("ad01_int8", "ethos-u55-128"): 0.0,
    ("ad01_int8", "ethos-u55-32"): 0.0,
    ("hello_world_int8", "ethos-u55-128"): 0.0,
    ("person_detect", "ethos-u55-128"): 0.025,
    ("vww_96_int8", "ethos-u55-128"): 0.025,
    ("pretrainedResnet_quant", "ethos-u65-256"): 0.025,
    ("kws_ref_model", "ethos-u85-256"): 0.025,
}


@pytest.mark.usefixtures("velas_code")
@pytest.mark.parametrize(("network", "accelerator"), VELA)
def test_velas_formula_gives_what_vela_says(
    model_file: Callable[[str], Path], network: str, accelerator: str
) -> None:
    artifact = mizzen.compile(model_file(f"{network}.tflite"), accelerator)
    report = cost_report(artifact)
    found = sum(row.vela_cycles or 0 for row in report.operations)
    assert artifact.report is not None
    said = artifact.report.figures["totalCycles"]
    assert found == pytest.approx(said, rel=VELA[network, accelerator] or 1e-9)


TINY = {
    # MLPerf Tiny 1.1 (M4, M33) and 1.2 (M85), closed division: seconds of so many inferences
    "cortex-m4": (120e6, {"ic": (38.958, 100), "kws": (19.964, 200), "vww": (30.080, 100)}),
    "cortex-m33": (128e6, {"ic": (15.888, 50), "kws": (15.300, 200), "vww": (11.666, 50)}),
    "cortex-m85": (480e6, {"ic": (12.717, 1500), "kws": (10.395, 3000), "vww": (13.393, 1000)}),
}
NETWORKS = {"ic": "pretrainedResnet_quant", "kws": "kws_ref_model", "vww": "vww_96_int8"}


@pytest.mark.parametrize("core", TINY)
def test_networks_on_a_core_take_about_what_was_published(
    model_file: Callable[[str], Path], core: str
) -> None:
    clock_hz, rows = TINY[core]
    processor = PROCESSORS[core]
    for test, (seconds, inferences) in rows.items():
        name = NETWORKS[test]
        graph = read(model_file(f"{name}.tflite").read_bytes(), name).main
        total = 0.0
        for row in graph.operators:
            kind = CLASSES.get(row.kind, Class.OTHER)
            outputs = sum(tensor.elements for tensor in graph.present(row.outputs))
            total += processor.cycles(kind, macs(graph, row) or outputs, outputs)
        published = seconds / inferences * clock_hz
        assert 1 / processor.error < total / published < processor.error, test
