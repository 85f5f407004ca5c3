"""One command from its words to its exit status.

Exit codes: 0 what was asked holds, 1 it does not (over a budget, a difference), 2 the input or the
command line is wrong, 3 a bug of Mizzen. 129, 130 and 143 after SIGHUP, SIGINT and SIGTERM, 141
when the reader of a pipe has gone, as shells count signals.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum

from mizzen.cli.console import CLOSED, Console
from mizzen.cli.ending import Ending
from mizzen.cli.parser import make_parser, normalise, parse, without_verb
from mizzen.diagnostics import Diagnostic, MizzenError, MizzenWarning, lacks_memory
from mizzen.escaping import one_line
from mizzen.files import take_all_away, take_leftovers_away

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


NO_STDOUT = Diagnostic(
    "E207",
    "stdout must be open to take the answer, and is closed",
    help="to have no answer, send it to /dev/null",
)

OF_THE_SYSTEM = frozenset(
    (
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EISDIR, errno.EMFILE,
        errno.ENAMETOOLONG, errno.ENFILE, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM,
        errno.EROFS,
    )
)  # fmt: skip
"""What is wrong with files and folders, and not with Mizzen. Ref: errno(3)."""


COMPLETION = "_ARGCOMPLETE"
"""Set by a shell that has `register-python-argcomplete mizzen`."""


class Exit(IntEnum):
    """What the process's exit status says."""

    HOLDS = 0
    DOES_NOT_HOLD = 1
    WRONG_INPUT = 2
    BUG = 3
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, and return the exit status.

    Without one it is `sys.argv`'s, and the process is the command's: it heeds the signals that end
    processes.
    """
    if COMPLETION in os.environ:
        complete()
    words = normalise(sys.argv[1:] if arguments is None else arguments)
    console = Console(json="--json" in words, quiet="--quiet" in words)
    ending = Ending()
    if arguments is None:
        ending.heed()
    if console.out is CLOSED:
        console.error(NO_STDOUT)
        return Exit.WRONG_INPUT
    try:
        take_leftovers_away()
        status = _execute(words, console)
    except BaseException as error:
        status = _report(error, console) if ending.status is None else Exit.INTERRUPTED
    if ending.status is None:
        return status
    ending.ignore_more()
    with suppress(OSError):  # the terminal may be what has gone
        console.note(ending.reason)
    take_all_away()
    return ending.status


def _report(error: BaseException, console: Console) -> int:
    """Say why a command ended without an answer, and return the exit status."""
    match error:
        case MizzenError():
            console.error(error.diagnostic)
            return Exit.WRONG_INPUT
        case KeyboardInterrupt():
            console.note("interrupted")
            return Exit.INTERRUPTED
        case BrokenPipeError():
            console.abandon_output()
            return Exit.PIPE_CLOSED
        case _ if lacks_memory(error):
            console.error(OUT_OF_MEMORY)
            return Exit.WRONG_INPUT
        case OSError():
            return _report_system(error, console)
        case Exception():
            return _report_bug(error, console)
        case _:
            raise error


def complete() -> None:
    """Answer a shell that asks how a line may go on, and end; only argcomplete knows how.

    Ref: argcomplete, "Synopsis".
    """
    with suppress(ImportError):
        from argcomplete import autocomplete

        autocomplete(make_parser())


def _execute(words: Sequence[str], console: Console) -> int:
    if (lacking := without_verb(words)) is not None:
        console.note(lacking)
        return Exit.WRONG_INPUT
    try:
        options = parse(words)
    except SystemExit as done:  # argparse has printed --help or --version
        return int(done.code or 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MizzenWarning)  # an answer has them
        answer = options.module.execute(options, console)
    console.answer(answer)
    if answer.error is not None:
        return Exit.WRONG_INPUT
    return Exit.HOLDS if answer.holds else Exit.DOES_NOT_HOLD


def _report_system(error: OSError, console: Console) -> int:
    """Say what the system refuses: a file without rights, a full disk. Anything else is a bug."""
    if error.errno not in OF_THE_SYSTEM:
        return _report_bug(error, console)
    said = (error.strerror or str(error)).lower()
    where = "a file" if error.filename is None else os.fsdecode(error.filename)
    console.error(
        Diagnostic(
            "E207",
            f"{where} must be there to read and write: {said}",
            help="make room or give rights there, or choose another place",
        )
    )
    return Exit.WRONG_INPUT


def _report_bug(error: Exception, console: Console) -> int:
    debug = bool(os.environ.get("MIZZEN_DEBUG"))
    if debug:
        import traceback

        console.note("".join(traceback.format_exception(error)).rstrip())
    text = BUG_TEXT.format(
        name=type(error).__name__,
        text=one_line(str(error)) or "no text",
        help=SHOWN_TRACEBACK if debug else ASK_FOR_TRACEBACK,
    )
    console.bug(text, f"{type(error).__name__}: {error}")
    return Exit.BUG
