"""The verb `doctor`: what it prints, its exit status, its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
MISMATCH = "E: NPU config mismatch. npu.macs_per_cc=7, optimizer.macs_per_cc=6\n"


@pytest.fixture
def artifact(here: Path, run: Run) -> Path:
    """The example compiled for ethos-u55-64."""
    assert run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-64")[0] == 0
    return here / "output" / "digits_vela.tflite"


def test_all_that_was_checked_holds(artifact: Path, run: Run) -> None:
    status, out, err = run("doctor", artifact, "--board", "corstone300")
    assert (status, err) == (0, "")
    assert "FAILS" not in out
    assert "  operators             not checked: needed: ethos-u; --resolver says" in out


def test_a_cause_is_an_error(artifact: Path, here: Path, run: Run) -> None:
    (here / "uart.log").write_text(MISMATCH)
    status, out, err = run("doctor", artifact, "--log", "uart.log")
    assert status == 1
    assert "  line 1  the chip has 128 MACs, and the stream is for 64 (Ethos-U core driver)" in out
    assert err == (
        "error[E474]: the network must start on the board, and the stream is for another number "
        "of MACs: line 1: the chip has 128 MACs, and the stream is for 64; the stream is for "
        "ethos-u55-64, the chip has ethos-u55-128\n"
        "  rule the log says so, and the artifact agrees\n"
        "  help compile the network with --accelerator-config ethos-u55-128\n"
    )


def test_a_log_that_says_nothing(here: Path, run: Run) -> None:
    (here / "uart.log").write_text("Invoke failed\n")
    status, _, err = run("doctor", "--log", "uart.log")
    assert status == 1
    assert err == (
        "error[E475]: a log must say why it fails, and this one says only that it does\n"
        "  help build the driver with -DETHOSU_LOG_SEVERITY=info and the runtime with its log, or "
        "give what was not checked\n"
    )


def test_the_document(artifact: Path, here: Path, run: Run) -> None:
    (here / "one.log").write_text(MISMATCH)
    (here / "two.log").write_text("NPU status=0x00000804, qread=0\n")
    status, out, _ = run(
        "doctor", artifact, "--accelerator-config", "ethos-u55-128", "--log", "one.log",
        "two.log", "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert status == 1
    assert found["status"]["wanted"] == "reading the command stream"
    causes = [(each["cause"], each["certainty"]) for each in found["verdicts"]]
    assert causes == [("other-size", "confirmed"), ("memory-unreached", "shown")]
    assert [each["line"] for each in found["log"]] == [1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the command line is wrong: doctor takes ARTIFACT, --log or --status"),
        (
            ["--status", "x"],
            "the command line is wrong: argument --status: a number is written like 0x804 or 2052, "
            "not 'x'",
        ),
        (
            ["--arena", "x", "--status", "1"],
            "the command line is wrong: argument --arena: a size is written like 393216 or 384K, "
            "not 'x'",
        ),
    ],
)
def test_a_wrong_command_line(words: list[str], message: str, run: Run) -> None:
    status, _, err = run("doctor", *words)
    assert status == 2
    assert err == f"error[E200]: {message}\n  help mizzen doctor --help\n"


def test_a_log_that_is_not_there(run: Run) -> None:
    status, _, err = run("doctor", "--log", "no.log")
    assert status == 2
    assert err == (
        "error[E110]: no.log must be a file that can be read: No such file or directory\n"
    )
