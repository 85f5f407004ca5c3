"""One command from its words to its exit status.

Exit codes: 0 what was asked holds, 1 it does not (over a budget, a difference), 2 the input or the
command line is wrong, 3 a bug of Mizzen. 130 after an interrupt, 141 when the reader of a pipe
has gone, as shells count signals.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import IntEnum

from mizzen.cli.console import Console
from mizzen.cli.parser import normalise, parse
from mizzen.diagnostics import Diagnostic, MizzenError

BUG_TEXT = """\
error[E000]: Mizzen stopped because of a bug in Mizzen: {name}: {text}
  help {help}"""
ASK_FOR_TRACEBACK = "set MIZZEN_DEBUG=1 for the traceback, and report it with the input if you can"
SHOWN_TRACEBACK = "report it with the traceback above, and the input if you can"
OUT_OF_MEMORY = Diagnostic(
    "E205",
    "the work must fit in this machine's memory, and does not",
    help="run a large batch in pieces: each inference needs the artifact's scratch memory",
)


class Exit(IntEnum):
    """What the process's exit status says."""

    HOLDS = 0
    DOES_NOT_HOLD = 1
    WRONG_INPUT = 2
    BUG = 3
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, `sys.argv` by default, and return the exit status."""
    words = normalise(sys.argv[1:] if arguments is None else arguments)
    console = Console(json="--json" in words)
    try:
        return _execute(words, console)
    except MizzenError as error:
        console.error(error.diagnostic)
        return Exit.WRONG_INPUT
    except KeyboardInterrupt:
        console.note("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        console.abandon_output()
        return Exit.PIPE_CLOSED
    except MemoryError:
        console.error(OUT_OF_MEMORY)
        return Exit.WRONG_INPUT
    except Exception as error:
        return _report_bug(error, console)


def _execute(words: Sequence[str], console: Console) -> int:
    try:
        options = parse(words)
    except SystemExit as done:  # argparse has printed --help or --version
        return int(done.code or 0)
    answer = options.execute(options, console)
    console.answer(answer)
    if answer.error is not None:
        return Exit.WRONG_INPUT
    return Exit.HOLDS if answer.holds else Exit.DOES_NOT_HOLD


def _report_bug(error: Exception, console: Console) -> int:
    debug = bool(os.environ.get("MIZZEN_DEBUG"))
    if debug:
        import traceback

        console.note("".join(traceback.format_exception(error)).rstrip())
    text = BUG_TEXT.format(
        name=type(error).__name__,
        text=str(error) or "no text",
        help=SHOWN_TRACEBACK if debug else ASK_FOR_TRACEBACK,
    )
    console.bug(text, f"{type(error).__name__}: {error}")
    return Exit.BUG
