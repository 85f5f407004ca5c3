"""`mizzen check --artifact` as a gate: budgets hold, and no option is ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

U55 = ("--accelerator-config", "ethos-u55-128")


def compiled(run: Run, *words: str) -> Path:
    """Compile the example, and return the artifact."""
    assert run("compile", "digits.tflite", *U55, "--prove", "off", *words)[0] == 0
    return Path("output/digits_vela.tflite")


def test_budgets_hold_an_artifact(run: Run, here: Path) -> None:
    check = ("check", "--artifact", compiled(run, "--ignore-ops", "SOFTMAX"))
    assert run(*check)[0] == 0
    status, _, err = run(*check, "--max-cpu-ops", 0)
    assert status == 1
    assert err == (
        "error[E401]: at most 0 operators of the artifact may be on the CPU, but 1 is: SOFTMAX\n"
        "  rule --max-cpu-ops\n"
        "  help see why with `mizzen check MODEL`, or allow more\n"
    )
    assert run(*check, "--max-cpu-ops", 1)[0] == 0


def test_the_sram_of_an_artifact_is_the_one_that_compare_prints(run: Run, here: Path) -> None:
    check = ("check", "--artifact", compiled(run))
    assert run(*check, "--sram-budget", 2000)[0] == 0
    status, _, err = run(*check, "--sram-budget", 1999)
    assert status == 1
    assert "error[E402]: the artifact may use 1999 bytes of SRAM, but needs 2000 (" in err
    assert "): 1 too many\n  rule --sram-budget\n" in err


@pytest.mark.parametrize(
    "words",
    [
        ("--optimise", "Size"),
        ("--memory-mode", "Sram_Only"),
        ("--ignore-ops", "SOFTMAX"),
        ("--generator", "vela"),
        ("--cliffs",),
        ("--sort", "cycles"),
        ("--clock", "400M"),
    ],
)
def test_what_an_artifact_would_ignore_is_refused(
    run: Run, here: Path, words: tuple[str, ...]
) -> None:
    status, out, err = run("check", "--artifact", "digits.tflite", *words)
    assert (status, out) == (2, "")
    assert err == (
        f"error[E200]: the command line is wrong: {words[0]} is for a MODEL, and --artifact is "
        "compiled already\n"
        "  help give MODEL in place of --artifact, or leave it out\n"
    )


def test_a_second_artifact_is_refused(run: Run, here: Path) -> None:
    status, _, err = run("check", "--artifact", "a.tflite", "--commands", "b.bin")
    assert status == 2
    assert err.startswith(
        "error[E200]: the command line is wrong: argument --artifact/--commands: "
    )
    assert "may be given once" in err
