"""Where the command line writes: answers to stdout, everything else to stderr.

With `--json`, stdout carries exactly one JSON document, whatever happens. Styles and progress
appear on terminals only, and never change the text itself. All text leaves by `_write`, which shows
what would steer a terminal as its escape; what a stream's encoding does not have, too.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from mizzen.cli.layout import count
from mizzen.diagnostics import Diagnostic, Severity
from mizzen.escaping import cut, one_line, shown

PROGRESS_AFTER_SECONDS = 2.0
PROGRESS_EVERY_SECONDS = 0.2
MAXIMUM_WIDTH = 100
LEAST_PROGRESS = 20
"""Characters of a line of progress, on the narrowest terminal too."""

BOLD = "\x1b[1m"
DIM = "\x1b[2m"
SEVERITY_STYLES = {
    Severity.ERROR: "\x1b[1;31m",
    Severity.WARNING: "\x1b[1;33m",
    Severity.NOTE: "\x1b[1;36m",
}
PLAIN = "\x1b[0m"
CLEAR_LINE = "\r\x1b[2K"


CLOSED = io.StringIO()
"""What stands for a stream that the process began without."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb found: for programs (`document`), for people (`text`), and whether it holds.

    `failures` say which wishes of the command line do not hold, `error` why the answer is not
    whole; `diagnostics` are warnings and notes. They are printed after the answer and are part of
    the document.
    """

    document: Mapping[str, object]
    text: str
    failures: Sequence[Diagnostic] = ()
    diagnostics: Sequence[Diagnostic] = ()
    error: Diagnostic | None = None

    @property
    def holds(self) -> bool:
        """Whether everything that was asked for holds."""
        return not self.failures and self.error is None


@dataclass(frozen=True, slots=True)
class Console:
    """The two output streams of one command, taken from `sys` when used.

    json   stdout is for programs
    quiet  nothing is written beside the answer but warnings and errors
    """

    json: bool = False
    quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout or CLOSED)  # None if it is closed
    err: TextIO = field(default_factory=lambda: sys.stderr or CLOSED)

    @property
    def width(self) -> int:
        """Columns for wrapped text and small tables."""
        return min(self.table_width, MAXIMUM_WIDTH)

    @property
    def table_width(self) -> int:
        """Columns of the terminal, for tables that show more where there is room."""
        return shutil.get_terminal_size().columns

    def note(self, text: str) -> None:
        """Write a line beside the answer."""
        if self.quiet:
            return
        _write(_styled(shown(text), DIM, self.err), self.err)

    def answer(self, answer: Answer) -> None:
        """Write a verb's answer, then what does not hold."""
        if self.json:
            extra: dict[str, object] = {
                "holds": answer.holds,
                "failures": [failure.as_dict() for failure in answer.failures],
                "diagnostics": [diagnostic.as_dict() for diagnostic in answer.diagnostics],
            }
            if answer.error is not None:
                extra["error"] = answer.error.as_dict()
            self._document({**answer.document, **extra})
        elif answer.text:
            _write(_with_bold_headings(shown(answer.text), self.out), self.out)
        errors = () if answer.error is None else (answer.error,)
        for diagnostic in (*answer.diagnostics, *answer.failures, *errors):
            self._diagnostic(diagnostic)

    def error(self, diagnostic: Diagnostic) -> None:
        """Write why the command ended without an answer."""
        self._say_to_programs(diagnostic.as_dict())
        self._diagnostic(diagnostic)

    def bug(self, text: str, message: str) -> None:
        """Write that Mizzen itself is at fault."""
        self._say_to_programs({"code": "E000", "severity": "error", "message": message})
        _write(shown(text), self.err)

    def abandon_output(self) -> None:
        """Send what is still buffered nowhere: the reader of stdout has gone."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.out.fileno())

    @contextmanager
    def progress(self, what: str) -> Generator[Callable[[str], None]]:
        """Show `what` and the seconds it takes while the block runs, from two seconds on.

        What it gives changes `what`, for work in steps.
        """
        work = [what]

        def change(text: str) -> None:
            work[0] = text

        if self.quiet or not self.err.isatty():
            yield change
            return
        done = threading.Event()
        shower = threading.Thread(target=_show_progress, args=(work, done, self.err), daemon=True)
        shower.start()
        try:
            yield change
        finally:
            done.set()
            shower.join()

    def _say_to_programs(self, error: Mapping[str, object]) -> None:
        """Write an error as the document, where stdout takes one: it may be what has failed."""
        if not self.json or self.out is CLOSED:
            return
        try:
            self._document({"error": error})
        except OSError:
            self.abandon_output()

    def _document(self, document: Mapping[str, object]) -> None:
        import json

        print(json.dumps(document, indent=2, allow_nan=False), file=self.out, flush=True)

    def _diagnostic(self, diagnostic: Diagnostic) -> None:
        head, _, rest = diagnostic.render().partition(":")
        style = SEVERITY_STYLES[diagnostic.severity]
        _write(f"{_styled(head, style, self.err)}:{rest}", self.err)


def counted(show: Callable[[str], None], total: int, noun: str) -> Callable[[int], None]:
    """Return a function that shows how much of a work is done, and how long the rest will take."""
    start = time.monotonic()

    def done(number: int) -> None:
        seconds = (time.monotonic() - start) / number * (total - number)
        show(f"{number:,} of {count(total, noun)}, {seconds:.0f} s left")

    return done


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def _show_progress(what: Sequence[str], done: threading.Event, stream: TextIO) -> None:
    start = time.monotonic()
    if done.wait(PROGRESS_AFTER_SECONDS):
        return
    while not done.wait(PROGRESS_EVERY_SECONDS):
        since = f" ... {time.monotonic() - start:.0f} s"
        room = shutil.get_terminal_size().columns - len(since) - 1
        stream.write(CLEAR_LINE + cut(one_line(what[0]), max(room, LEAST_PROGRESS)) + since)
        stream.flush()
    stream.write(CLEAR_LINE)
    stream.flush()


def _with_bold_headings(text: str, stream: TextIO) -> str:
    """Make lines that start at the margin bold: headings do, what belongs to them is indented."""
    lines = text.split("\n")
    return "\n".join(_styled(line, BOLD, stream) if line[:1].strip() else line for line in lines)


def _styled(text: str, style: str, stream: TextIO) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not stream.isatty() else f"{style}{text}{PLAIN}"
