"""Exit statuses, errors and bugs of the command line, in this process and as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from mizzen.cli import targets
from mizzen.cli.console import Answer
from mizzen.cli.main import main
from mizzen.cli.parser import help_texts
from mizzen.diagnostics import Diagnostic, Severity, fail

MIZZEN = str(Path(sys.executable).parent / "mizzen")


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def execute(*_: object) -> NoReturn:
        raise error

    return execute


def answering(answer: Answer) -> Callable[..., Answer]:
    return lambda *_: answer


OVER = Diagnostic("E401", "SRAM must be at most 1 KiB, not 2 KiB", help="use less")
SLOW = Diagnostic("W401", "this is slow", Severity.WARNING)


def test_what_holds_gives_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == 0
    assert capsys.readouterr().out.startswith("Accelerators\n")


def test_what_does_not_hold_gives_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Answer({"size": 2048}, "Size\n  2 KiB", failures=[OVER], diagnostics=[SLOW])
    monkeypatch.setattr(targets, "execute", answering(answer))
    assert main(["targets"]) == 1
    out, err = capsys.readouterr()
    assert out == "Size\n  2 KiB\n"
    assert err == (
        "warning[W401]: this is slow\n"
        "error[E401]: SRAM must be at most 1 KiB, not 2 KiB\n"
        "  help use less\n"
    )


def test_json_has_the_failures_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(targets, "execute", answering(Answer({"size": 1}, "1", failures=[OVER])))
    assert main(["targets", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "size": 1,
        "holds": False,
        "failures": [
            {
                "code": "E401",
                "severity": "error",
                "message": "SRAM must be at most 1 KiB, not 2 KiB",
                "help": "use less",
            }
        ],
        "diagnostics": [],
    }


def test_wrong_input_gives_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(targets, "execute", raising(fail("E101", "a file must be there")))
    assert main(["targets"]) == 2
    assert capsys.readouterr() == ("", "error[E101]: a file must be there\n")


def test_wrong_input_is_a_json_document_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(targets, "execute", raising(fail("E101", "a file must be there")))
    assert main(["targets", "--json"]) == 2
    out, err = capsys.readouterr()
    expected = {"code": "E101", "severity": "error", "message": "a file must be there"}
    assert json.loads(out) == {"error": expected}
    assert err == "error[E101]: a file must be there\n"


@pytest.mark.parametrize(
    ("words", "reason", "help"),
    [
        (
            ["targets", "--konfig"],
            "mizzen targets does not take --konfig",
            "did you mean --config?",
        ),
        (["targets", "--config"], "argument --config: expected one argument", "mizzen targets"),
        (
            ["targets", "--conf", "x"],
            "mizzen targets does not take --conf x",
            "did you mean --conf",
        ),
        (["run", "x", "-9"], "mizzen run does not take -9", "mizzen run --help"),
    ],
)
def test_a_wrong_command_line_gives_2(
    words: list[str], reason: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error[E200]: the command line is wrong: {reason}\n  help {help}")


@pytest.mark.parametrize("words", [[], ["mesh"]])
def test_no_verb_gives_the_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.rstrip("\n") == help_texts()[" ".join(("mizzen", *words))].rstrip("\n")


def test_a_bug_gives_3_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MIZZEN_DEBUG", raising=False)
    monkeypatch.setattr(targets, "execute", raising(ZeroDivisionError("division by zero")))
    assert main(["targets"]) == 3
    assert capsys.readouterr() == (
        "",
        "error[E000]: Mizzen stopped because of a bug in Mizzen: ZeroDivisionError: division by "
        "zero\n  help set MIZZEN_DEBUG=1 for the traceback, and report it with the input if you "
        "can\n",
    )


def test_a_bug_shows_its_traceback_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MIZZEN_DEBUG", "1")
    monkeypatch.setattr(targets, "execute", raising(KeyError("x")))
    assert main(["targets", "--json"]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["message"] == "KeyError: 'x'"
    assert err.startswith("Traceback (most recent call last):\n")


def test_an_interrupt_gives_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(targets, "execute", raising(KeyboardInterrupt()))
    assert main(["targets"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_a_closed_pipe_is_quiet() -> None:
    command = f"{MIZZEN} targets | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout in {"141\n", "0\n"}  # 0 when everything was written before `true` ended


def test_help_and_version_give_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    assert main(["-V"]) == 0
    assert capsys.readouterr().out.endswith("\nmizzen 0.1.0\nmizzen 0.1.0\n")


@pytest.mark.parametrize("words", [[], ["compile"], ["mesh", "map"]])
def test_the_word_help_explains_a_verb(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", *words]) == 0
    asked = capsys.readouterr().out
    assert main([*words, "--help"]) == 0
    assert asked == capsys.readouterr().out
    assert asked.startswith(" ".join(["usage: mizzen", *words]))


def test_help_about_no_verb_says_which_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "compil"]) == 2
    assert capsys.readouterr().err.endswith("\n  help did you mean compile?\n")


def test_the_module_is_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mizzen", "--version"], check=True, capture_output=True, text=True
    )
    assert done.stdout == "mizzen 0.1.0\n"


def test_a_lack_of_memory_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(targets, "execute", raising(MemoryError()))
    assert main(["targets"]) == 2
    assert capsys.readouterr().err.startswith(
        "error[E205]: the work must fit in this machine's memory, and does not\n  help run a large "
    )
