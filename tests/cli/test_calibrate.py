"""The verb `calibrate`: what it prints, what it writes, its exit status, its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mizzen.boards import Measured, measured_file
from mizzen.boards.board import MeasuredMemory

Run = Callable[..., tuple[int, str, str]]
CUT = ("--ignore-ops", "DEPTHWISE_CONV_2D,MAX_POOL_2D", "--accelerator-config", "ethos-u55-128")
COUNTED = (15_911, 4_543, 11_467)
"""Of the three parts, with a flash of 0.4 bytes a cycle and 150 cycles of latency."""
WHOLE = ("--accelerator-config", "ethos-u55-128", "--prove", "off")
USUAL, SLOW = 14_456, 31_590
"""Cycles of the example, all of it on the NPU: with the memories of `vela.ini`, with that flash."""


def estimate(out: str) -> int:
    """Return the cycles that a verb prints."""
    said = re.search(r"estimate +([\d,]+) cycles", out)
    assert said is not None, out
    return int(said[1].replace(",", ""))


@pytest.fixture
def artifact(here: Path, run: Run) -> Path:
    """The example, cut into three parts of the NPU, and the log of its board."""
    assert run("compile", "digits.tflite", *CUT, "--prove", "off")[0] == 0
    rows = [
        f"mizzen-counters: inference {number}, part {part} of 3, cycles {cycles}"
        for number in (1, 2)
        for part, cycles in enumerate(COUNTED, 1)
    ]
    (here / "uart.log").write_text("\n".join(rows))
    return here / "output" / "digits_vela.tflite"


def test_what_was_measured_goes_into_a_boards_file(artifact: Path, run: Run) -> None:
    words = ("--log", "uart.log", "-o", "mine.toml", "--board", "corstone300")
    status, out, err = run("calibrate", artifact, *words)
    assert (status, err) == (0, "")
    assert "  forms     Mizzen's counter lines\n" in out
    assert re.search(r"OffChipFlash  bytes a cycle +1 +0\.(39|40)\d* +within", out)
    assert out.endswith("Written\n  mine.toml  corstone300 with its memories as measured\n")
    status, out, err = run("check", "digits.tflite", *WHOLE, "--board", "mine.toml")
    assert status == 0
    assert "  measured     uart.log (sha256 " in err
    assert estimate(out) == pytest.approx(SLOW, rel=0.02)


@pytest.mark.parametrize(
    ("compiled", "inherits", "error"),
    [
        (("--board", "pse84"), "infineon_pse84", ""),
        (
            ("--board", "slow.toml"),
            "corstone300",
            "warning[W354]: mine.toml should inherit the board that digits_vela.tflite ran on, "
            "which was compiled for slow, whose file is elsewhere: it inherits corstone300\n"
            "  help --board slow.toml\n",
        ),
        (
            (),
            "corstone300",
            "warning[W354]: mine.toml should inherit the board that digits_vela.tflite ran on, "
            "which names none: it inherits corstone300\n"
            "  help --board NAME, one of `mizzen targets`\n",
        ),
    ],
    ids=["built in", "of a file", "none"],
)
def test_the_board_that_it_was_compiled_for_is_inherited(
    here: Path, run: Run, compiled: tuple[str, ...], inherits: str, error: str
) -> None:
    measured(here)
    assert run("compile", "digits.tflite", *WHOLE, *compiled)[0] == 0
    (here / "uart.log").write_text("mizzen-counters: inference 1, cycles 31590\n")
    words = ("output/digits_vela.tflite", "--log", "uart.log", "-o", "mine.toml")
    status, out, err = run("calibrate", *words)
    assert (status, err) == (0, error)
    assert (here / "mine.toml").read_text().startswith(f'inherits = "{inherits}"\n')
    assert out.endswith(f"Written\n  mine.toml  {inherits} with its memories as measured\n")


def test_a_short_name_of_a_board_is_inherited_by_its_own(artifact: Path, run: Run) -> None:
    words = ("--log", "uart.log", "-o", "mine.toml", "--board", "pse84", "--json")
    status, out, _ = run("calibrate", artifact, *words)
    assert (status, json.loads(out)["inherits"]) == (0, "infineon_pse84")
    assert run("check", "digits.tflite", "--prove", "off", "--board", "mine.toml")[0] == 0


def test_the_document(artifact: Path, run: Run) -> None:
    status, out, _ = run("calibrate", artifact, "--log", "uart.log", "--json")
    told = json.loads(out)
    assert status == 0
    assert [count["measured"] for count in told["counts"]] == list(COUNTED)
    assert told["deviation"]["after"]["worst"] < 0.05 < told["deviation"]["before"]["median"]
    assert told["deviation"]["held_out_after"] is None
    assert told["logs"][0]["measurements"] == 6
    assert told["written"] is None
    flash = next(each for each in told["parameters"] if each["memory"] == "OffChipFlash")
    assert flash["known"]
    assert flash["value"] == pytest.approx(0.4, rel=0.05)


def test_another_artifact_of_the_board_counts_too(artifact: Path, run: Run) -> None:
    words = ("calibrate", artifact, "--log", "uart.log", "--also", f"{artifact}=uart.log")
    status, out, _ = run(*words, "--json")
    told = json.loads(out)
    assert status == 0
    assert told["artifacts"] == ["digits_vela.tflite"] * 2
    assert len(told["counts"]) == 6
    assert told["deviation"]["held_out_after"]["median"] < 0.05


def test_artifacts_that_ran_otherwise_are_not_fitted_together(artifact: Path, run: Run) -> None:
    words = ("--memory-mode", "Sram_Only", "--output-dir", "other")
    assert run("compile", "digits.tflite", *WHOLE, *words)[0] == 0
    also = ("--also", "other/digits_vela.tflite=uart.log")
    status, _, err = run("calibrate", artifact, "--log", "uart.log", *also)
    assert status == 2
    assert err == (
        "error[E749]: all artifacts must run alike, on ethos-u55-128 in Shared_Sram, and "
        "digits_vela.tflite is for ethos-u55-128 in Sram_Only\n  help fit each by itself\n"
    )


def test_what_explains_nothing_is_not_written(artifact: Path, here: Path, run: Run) -> None:
    (here / "odd.log").write_text(
        "".join(
            f"mizzen-counters: inference 1, part {part} of 3, cycles {cycles}\n"
            for part, cycles in enumerate((900, 900, 90_000), 1)
        )
    )
    status, out, err = run("calibrate", artifact, "--log", "odd.log", "-o", "mine.toml")
    assert status == 1
    assert "  mine.toml  nothing: the memories do not explain the counts\n" in out
    assert not (here / "mine.toml").exists()
    assert err.startswith("error[E745]: estimates with the fitted memories must be within 10%")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("-o", "mine.txt"),
            "error[E747]: a board's file must end with .toml, not 'mine.txt'\n"
            "  help --output mine.toml\n",
        ),
        (
            ("--log", "none.log"),
            "error[E110]: none.log must be a file that can be read: No such file or directory\n",
        ),
        (
            ("--board", "grove_vision_ai_v2"),
            "error[E442]: the NPU on grove_vision_ai_v2 must be ethos-u55-64, not 'ethos-u55-128'"
            "\n  help compile the network with --accelerator-config ethos-u55-64\n",
        ),
    ],
    ids=["ending", "log", "board"],
)
def test_what_is_wrong_is_said(
    artifact: Path, run: Run, words: tuple[str, ...], error: str
) -> None:
    given = words if "--log" in words else ("--log", "uart.log", *words)
    status, _, err = run("calibrate", artifact, *given)
    assert (status, err) == (2, error)


def test_a_board_cannot_inherit_itself(artifact: Path, here: Path, run: Run) -> None:
    assert run("calibrate", artifact, "--log", "uart.log", "-o", "mine.toml")[0] == 0
    before = (here / "mine.toml").read_text()
    words = ("--board", "mine.toml", "-o", "mine.toml", "--log", "uart.log")
    status, _, err = run("calibrate", artifact, *words)
    assert status == 2
    assert err.startswith("error[E748]: mine.toml must inherit another board's file")
    assert (here / "mine.toml").read_text() == before


def test_an_artifact_for_the_cpu_has_no_counters(here: Path, run: Run) -> None:
    (here / "uart.log").write_text("NPU TOTAL: 9 cycles")
    status, _, err = run("calibrate", "digits.tflite", "--log", "uart.log")
    assert status == 2
    assert err.startswith(
        "error[E741]: digits.tflite must have a program of Ethos-U, whose counters a log is of"
    )


def measured(here: Path, name: str = "slow") -> Path:
    """Write a board whose flash is slow."""
    flash = MeasuredMemory("OffChipFlash", 0.4, 150, 0)
    known = Measured("ethos-u55-128", "Ethos_U55_High_End_Embedded", "made up", (flash,))
    path = here / "slow.toml"
    path.write_text(measured_file("corstone300", name, "Slow", known))
    return path


def test_a_report_takes_measured_memories(here: Path, run: Run) -> None:
    assert run("compile", "digits.tflite", *WHOLE)[0] == 0
    report = ("report", "output/digits_vela.tflite", "-o", "page.html")
    assert estimate(run(*report)[1]) == USUAL
    assert estimate(run(*report, "--board", measured(here))[1]) == pytest.approx(SLOW, rel=0.03)


def test_the_emulator_times_with_measured_memories(here: Path, run: Run) -> None:
    assert run("compile", "digits.tflite", *WHOLE)[0] == 0
    artifact, took = "output/digits_vela.tflite", list[int]()
    for board in ("corstone300", measured(here, "corstone300")):
        status, out, _ = run("emulate", artifact, "--board", board, "--json")
        assert status == 0
        took.append(json.loads(out)["npu_cycles"])
    assert took[1] > 2 * took[0]


def test_a_report_says_that_measured_memories_are_of_another_npu(here: Path, run: Run) -> None:
    board = measured(here)
    words = ("--accelerator-config", "ethos-u55-256", "--prove", "off")
    assert run("compile", "digits.tflite", *words)[0] == 0
    _, _, err = run("report", "output/digits_vela.tflite", "-o", "page.html", "--board", board)
    assert "warning[W350]: the memories of slow were measured with ethos-u55-128" in err
