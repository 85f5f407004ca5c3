"""The memory mode of a project: as compiled, as the board's compilations have it, or refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import board_names, find_board
from mizzen.diagnostics import MizzenError
from mizzen.export import RUNTIMES, Request, board_fit
from mizzen.export.memory_mode import doubts, usual_mode

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
GROVE = find_board("grove_vision_ai_v2")


@cache
def artifact_for(board: str) -> Artifact:
    return mizzen.compile(DIGITS, board=board, prove="off")


def without_report(artifact: Artifact) -> Artifact:
    return mizzen.load(artifact.data)


@pytest.mark.parametrize("name", board_names())
def test_without_a_report_it_is_the_mode_of_a_compilation_for_the_board(name: str) -> None:
    artifact, board = artifact_for(name), find_board(name)
    assert artifact.report is not None
    compiled = artifact.report.configuration["memory_mode"]
    assert usual_mode(artifact.accelerator, board) == compiled
    assert Request(board).mode_for(without_report(artifact)) == compiled
    assert board_fit(without_report(artifact), board).memory_mode == compiled


def test_what_is_for_no_npu_is_laid_out_as_the_boards_own_npu_would_have_it() -> None:
    assert usual_mode(None, GROVE) == "Shared_Sram"
    assert usual_mode(None, find_board("nxp_imx93")) == "Dedicated_Sram_384KB"


def told(artifact: Artifact, mode: str, *, is_asked: bool) -> list[str]:
    return [each.render() for each in doubts(artifact, GROVE, mode, is_asked=is_asked)]


def test_a_mode_that_nothing_says_is_told() -> None:
    lone = without_report(artifact_for("grove_vision_ai_v2"))
    assert told(lone, "Shared_Sram", is_asked=False) == [
        f"warning[W324]: the memory mode of {lone.name} is not known, as no report is beside it: "
        "Shared_Sram is taken\n"
        "  help keep the report, NAME.json, beside the artifact, or name the mode with "
        "--memory-mode"
    ]
    assert told(lone, "Shared_Sram", is_asked=True) == []
    assert list(doubts(lone, find_board("himax_we2"), "Sram_Only", is_asked=False)) == []


def test_another_mode_than_the_compiled_one_is_told() -> None:
    artifact = artifact_for("grove_vision_ai_v2")
    assert told(artifact, "Shared_Sram", is_asked=True) == []
    assert told(artifact, "Sram_Only", is_asked=True) == [
        "warning[W325]: digits_vela.tflite was compiled for Shared_Sram, and is laid out for "
        "Sram_Only\n"
        "  help leave out --memory-mode, or compile it with --memory-mode Sram_Only"
    ]


def test_a_network_with_nothing_for_an_npu_is_told() -> None:
    network = mizzen.load(DIGITS)
    assert told(network, "Shared_Sram", is_asked=False) == [
        "warning[W326]: nothing in digits.tflite is for an NPU: the processor computes the whole "
        "network\n"
        "  help compile the model first, and give the artifact that `mizzen compile` writes"
    ]


@pytest.mark.parametrize("runtime", ["c", "tflm"])
def test_the_vendors_software_places_the_model(runtime: str) -> None:
    """Sources for it would lie elsewhere than the memory mode says."""
    artifact = artifact_for("grove_vision_ai_v2")
    with pytest.raises(MizzenError) as caught:
        RUNTIMES[runtime].project(artifact, Request(GROVE, "Sram_Only"))
    assert str(caught.value) == (
        "error[E497]: sources for Seeed_Grove_Vision_AI_Module_V2 must be of a memory mode that "
        "has the model in FLASH, as Shared_Sram, and Sram_Only has the model in SRAM\n"
        "  help compile the network with --memory-mode Shared_Sram, or export with --bare-metal"
    )
    bare = RUNTIMES[runtime].project(artifact, Request(GROVE, "Sram_Only", bare_metal=True))
    assert bare.memory_mode == "Sram_Only"
    modes = tuple(replace(mode, places=GROVE.modes[1].places) for mode in GROVE.modes)
    same = replace(GROVE, modes=modes)
    assert RUNTIMES[runtime].project(artifact, Request(same, "Sram_Only")).files
