"""What terminals get beside the text: styles and progress, and nothing of them elsewhere."""

from __future__ import annotations

import io
import time

import pytest

from mizzen.cli import console as consoles
from mizzen.cli.console import Answer, Console
from mizzen.diagnostics import Diagnostic

TEXT = "Heading\n  row\n\nOther\n  row"
FAILURE = Diagnostic("E401", "it must hold: it does not")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(out: io.StringIO, err: io.StringIO) -> tuple[str, str]:
    Console(out=out, err=err).answer(Answer({}, TEXT, failures=[FAILURE]))
    return out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_files_get_the_text_alone() -> None:
    plain = written(io.StringIO(), io.StringIO())
    assert plain == (f"{TEXT}\n", "error[E401]: it must hold: it does not\n")


def test_terminals_get_bold_headings_and_coloured_severities() -> None:
    assert written(Terminal(), Terminal()) == (
        "\x1b[1mHeading\x1b[0m\n  row\n\n\x1b[1mOther\x1b[0m\n  row\n",
        "\x1b[1;31merror[E401]\x1b[0m: it must hold: it does not\n",
    )


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_terminals_that_want_no_colour_get_the_text_alone(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert written(Terminal(), Terminal()) == written(io.StringIO(), io.StringIO())


def test_long_work_shows_progress_on_a_terminal_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consoles, "PROGRESS_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(consoles, "PROGRESS_EVERY_SECONDS", 0.01)
    err = Terminal()
    with Console(err=err).progress("working"):
        deadline = time.monotonic() + 10
        while "working" not in err.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "\r\x1b[2Kworking ... 0 s" in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[2K")


def test_short_work_shows_no_progress() -> None:
    err = Terminal()
    with Console(err=err).progress("working"):
        pass
    assert err.getvalue() == ""


def test_files_get_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consoles, "PROGRESS_AFTER_SECONDS", 0.0)
    err = io.StringIO()
    with Console(err=err).progress("working"):
        time.sleep(0.05)
    assert err.getvalue() == ""


def test_json_is_the_whole_of_stdout_even_for_text() -> None:
    out = io.StringIO()
    Console(json=True, out=out, err=io.StringIO()).answer(Answer({"a": 1}, TEXT))
    assert (
        out.getvalue()
        == '{\n  "a": 1,\n  "holds": true,\n  "failures": [],\n  "diagnostics": []\n}\n'
    )
