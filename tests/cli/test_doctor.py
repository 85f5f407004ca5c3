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
            "the command line is wrong: argument --status: a register is written like 0x804, "
            "not 'x'",
        ),
        (
            ["--status", "804"],
            "the command line is wrong: argument --status: a register is written in hexadecimal, "
            "like 0x804, not '804': did you mean 0x804?",
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


LOG_OF_NPU = "Node ethos-u (number 0) failed to invoke with status 1\n"


def test_an_artifact_that_is_not_the_file_on_the_board(here: Path, run: Run) -> None:
    (here / "uart.log").write_text(LOG_OF_NPU)
    words = ("doctor", "digits.tflite", "--board", "grove_vision_ai_v2", "--log", "uart.log")
    status, _, err = run(*words)
    assert status == 1
    assert err == (
        "error[E474]: the network must start on the board, and this artifact is not the file on "
        "the board: line 1: operator 0, ethos-u, failed to invoke; the artifact has nothing for "
        "an NPU\n"
        "  rule the log says so\n"
        "  help give doctor the file that the firmware was built with: `mizzen compile` and Vela "
        "call it NAME_vela.tflite\n"
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_logs_of_every_encoding_are_read(encoding: str, here: Path, run: Run) -> None:
    (here / "uart.log").write_bytes(f"Booting\r\n{MISMATCH}".encode(encoding))
    status, out, _ = run("doctor", "--log", "uart.log")
    assert status == 1
    assert "line 2  the chip has 128 MACs, and the stream is for 64" in out


def test_a_log_without_a_known_text_does_not_hold(artifact: Path, here: Path, run: Run) -> None:
    (here / "uart.log").write_text("hello\n")
    status, _, err = run("doctor", artifact, "--board", "corstone300", "--log", "uart.log")
    assert status == 1
    assert err == (
        "error[E475]: a log must have a text that is known here, and this one has none\n"
        "  help give the firmware's whole log as text; the driver writes more with "
        "-DETHOSU_LOG_SEVERITY=info\n"
    )


def test_an_empty_log_is_refused(here: Path, run: Run) -> None:
    (here / "uart.log").write_text("\n")
    status, _, err = run("doctor", "--log", "uart.log")
    assert status == 2
    assert err == (
        "error[E475]: a log must have text, and uart.log has none\n"
        "  help give what the firmware wrote\n"
    )


def test_an_inference_that_began_had_its_arena_and_operators(
    artifact: Path, here: Path, run: Run
) -> None:
    (here / "uart.log").write_text(LOG_OF_NPU)
    words = ("doctor", artifact, "--board", "corstone300", "--log", "uart.log")
    _, out, err = run(*words, "--arena", "1K", "--resolver", "ethosu")
    assert "operators             holds: ethos-u: the log shows that the inference began" in out
    assert "--arena says" not in out
    assert "E474" not in err
    assert "E475" in err


def test_a_resolver_with_a_misspelt_operator(artifact: Path, run: Run) -> None:
    status, _, err = run("doctor", artifact, "--resolver", "ethosu")
    assert status == 1
    assert err.endswith("without ethos-u\n  rule the artifact does not fit\n"
                        "  help did you mean ethos-u?\n")  # fmt: skip


def test_a_driver_that_looks_for_the_npu_elsewhere(artifact: Path, here: Path, run: Run) -> None:
    (here / "uart.log").write_text(
        "I: Initializing NPU: base_address=0x50004000, fast_memory=0, fast_memory_size=0\n"
        + LOG_OF_NPU
    )
    words = ("doctor", artifact, "--board", "grove_vision_ai_v2", "--log", "uart.log")
    status, out, err = run(*words)
    assert status == 1
    assert "lies in flash: map it (XIP) before" not in out  # there is a cause
    assert err == (
        "error[E474]: the network must start on the board, and the NPU does not answer at its "
        "address, or not in this security state: the driver looks at 0x50004000, "
        "grove_vision_ai_v2 has it at 0x53020000 or 0x43020000\n"
        "  rule the artifact does not fit\n"
        "  help call ethosu_init with the address 0x53020000\n"
    )


def test_flash_that_may_not_be_mapped(artifact: Path, here: Path, run: Run) -> None:
    (here / "uart.log").write_text(LOG_OF_NPU)
    words = ("doctor", artifact, "--board", "grove_vision_ai_v2", "--log", "uart.log")
    _, out, _ = run(*words, "--memory-mode", "Shared_Sram")
    assert "note  the model of grove_vision_ai_v2 lies in flash: map it (XIP) before" in out
