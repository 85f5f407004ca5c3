"""What may be meant by a word of the command line that is unknown, or by a missing file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_a_clock_without_its_unit_is_asked_about(here: Path, run: Run) -> None:
    status, _, err = run("check", "digits.tflite", "--clock", "400")
    assert status == 2
    assert "a clock is at least 1 MHz, and '400' is less: did you mean 400M?" in err


def test_the_runtime_of_an_export_is_named_in_any_case(here: Path, run: Run) -> None:
    words = ("export", "digits.tflite", "--board", "corstone300", "--to")
    status, _, err = run(*words, "zephyr")
    assert status == 2
    assert (
        "argument --to: the runtime must be c, tflm, executorch or tflite, not 'zephyr': an "
        "application of Zephyr takes --to c, as docs/how-to/zephyr.md says\n"
    ) in err
    assert "did you mean executorch?" in run(*words, "executorc")[2]
    assert run("compile", "digits.tflite", "--prove", "off")[0] == 0
    words = ("export", "output/digits_vela.tflite", "--board", "corstone300", "--to")
    assert run(*words, "TFLM")[0] == 0


def test_a_file_that_is_not_there_names_the_one_that_is(here: Path, run: Run) -> None:
    said = "error[E110]: digit.tflite must be a file that can be read: No such file or directory\n"
    assert run("check", "digit.tflite")[2] == f"{said}  help did you mean digits.tflite?\n"
    assert "  help" not in run("check", "other.tflite")[2]
    (here / "models").mkdir()
    (here / "digits.tflite").rename(here / "models" / "digits.tflite")
    assert "  help did you mean models" in run("check", "models/digit.tflite")[2]


@pytest.mark.skipif(os.sep == "\\", reason="there a backslash divides a path")
def test_backslashes_of_another_system(here: Path, run: Run) -> None:
    (here / "models").mkdir()
    (here / "digits.tflite").rename(here / "models" / "digits.tflite")
    _, _, err = run("check", "models\\digits.tflite")
    assert err.endswith("  help did you mean models/digits.tflite?\n")


def test_an_accelerator_of_no_such_size_is_of_the_same_product(here: Path, run: Run) -> None:
    _, _, err = run("check", "digits.tflite", "--accelerator-config", "ethos-u55-512")
    assert err.endswith("  help did you mean ethos-u55-256?\n")
