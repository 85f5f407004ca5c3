"""What Mizzen tells a person: one diagnostic type, where it points, how it reads.

A diagnostic says, in this order: where in the user's model, what must hold, what came, where the
rule is written, what to do. Library code raises `MizzenError` with a diagnostic, or collects
diagnostics that are no errors; only the command line prints.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path, PurePath

from mizzen.escaping import one_line

ProgressCallback = Callable[[float], None]
"""Called with the seconds that a compilation has taken so far, once it takes long."""


class Severity(Enum):
    """How grave a diagnostic is, and the word it starts with."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something comes from in the user's model.

    `operator` is the operator's index in execution order, `kind` its type in the model's own words
    (``CONV_2D``), `name` the name of its first output.
    """

    model: str | None = None
    operator: int | None = None
    kind: str | None = None
    name: str | None = None
    command: int | None = None
    """Word offset of the NPU command, where the place is in a command stream."""
    module: str | None = None
    """Path of the module in a PyTorch model, ``features.0.conv``."""
    source: str | None = None
    """File and line of the user's program, ``model.py:12``."""

    def __str__(self) -> str:
        operator = None
        if self.operator is not None:
            operator = f"operator {self.operator}" + (f" {self.kind}" if self.kind else "")
        elif self.kind:
            operator = self.kind
        command = None if self.command is None else f"command at word {self.command}"
        parts = (self.model, command, self.source, self.module, operator)
        place = ", ".join(part for part in parts if part)
        if self.name:
            place = f'{place} -> "{self.name}"' if place else f'"{self.name}"'
        return place or "unknown place"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: `message` says what must hold and what came.

    `code` is stable and short (``E201``); `rule` names where the rule is written (a manual's
    section, a compiler's constraint); `help` says what to do.
    """

    code: str
    message: str
    severity: Severity = Severity.ERROR
    origin: Origin | None = None
    rule: str | None = None
    help: str | None = None

    def render(self) -> str:
        """Return the diagnostic as text, one line per part, without a trailing newline.

        Names in it come from files: ends of lines and what steers a terminal are escaped.
        """
        lines = [f"{self.severity.value}[{self.code}]: {one_line(self.message)}"]
        parts = (("at", self.origin), ("rule", self.rule), ("help", self.help))
        lines += [f"  {label:<5}{one_line(str(part))}" for label, part in parts if part is not None]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the diagnostic as JSON-ready data; absent parts are left out."""
        parts: dict[str, object | None] = {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "at": None if self.origin is None else str(self.origin),
            "rule": self.rule,
            "help": self.help,
        }
        return {key: part for key, part in parts.items() if part is not None}


class MizzenWarning(UserWarning):
    """A diagnostic that is no error, as Python's `warnings` has it; the text is its `render`."""


def warn(diagnostics: Iterable[Diagnostic], above: int) -> None:
    """Issue those that are warnings as Python's.

    above  how many callers of the caller stand between it and the user's line
    """
    import warnings

    for diagnostic in diagnostics:
        if diagnostic.severity is Severity.WARNING:
            warnings.warn(diagnostic.render(), MizzenWarning, stacklevel=above + 3)


class Device(Enum):
    """Where an operator executes."""

    NPU = "NPU"
    CPU = "CPU"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something of a network is not on an NPU: what must hold, what came, what to do.

    `message` says it in a sentence. `limit` and `actual` are the parts of a rule of ours; where
    only a compiler's own words are known, `limit` is its rule, if it gives one. `source` says where
    the rule is written.
    """

    rule: str
    message: str
    limit: str = ""
    actual: str = ""
    help: str = ""
    source: str = ""


class MizzenError(Exception):
    """The request cannot be done; `diagnostic` says why. Never a bug of Mizzen's own."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.render())
        self.diagnostic = diagnostic


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that memory is short: of an allocation, a mapping, a new process."""
    is_refusal = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return is_refusal or isinstance(error, MemoryError)


def fail(
    code: str,
    message: str,
    *,
    origin: Origin | None = None,
    rule: str | None = None,
    help: str | None = None,
) -> MizzenError:
    """Make the error for `raise`: ``raise fail("E101", "...")``."""
    return MizzenError(Diagnostic(code, message, Severity.ERROR, origin, rule, help))


def unreadable(path: Path, error: OSError | ValueError) -> MizzenError:
    """Return the error for a file that cannot be read, with the file that may be meant: E110."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return fail(
        "E110",
        f"{path} must be a file that can be read: {reason}",
        help=_meant_file(path) if isinstance(error, FileNotFoundError) else None,
    )


MOST_FILES = 1000
"""Names of a folder that are compared with one that is not there."""


def _meant_file(path: Path) -> str | None:
    slashed = PurePath(str(path).replace("\\", "/"))
    if slashed != path and Path(slashed).is_file():
        return f"did you mean {slashed}?"
    try:
        beside = list(islice(path.parent.iterdir(), MOST_FILES))
    except OSError:
        return None
    names = sorted(each for each in beside if not each.name.startswith("."))
    alike = nearest(path.stem, {each.stem for each in names})
    meant = [each for each in names if each.stem in alike]
    same_kind = [each for each in meant if each.suffix == path.suffix]
    return _question([str(each) for each in same_kind or meant])


def install_extra(extra: str) -> str:
    """Return how to install Mizzen with an extra: its own checkout, and no name on an index."""
    return f"install Mizzen with its extra {extra}: pip install '.[{extra}]' in its checkout"


MOST_MEANT = 8
"""Names that a suggestion has; there are seven variants of Ethos-N78."""


def did_you_mean(came: str, known: Iterable[str]) -> str | None:
    """Return which of the known names may have been meant, as the help of an error."""
    return _question(nearest(came, known))


def _question(meant: Sequence[str]) -> str | None:
    if not meant:
        return None
    *others, last = meant
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def nearest(came: str, known: Iterable[str]) -> list[str]:
    """Return the names of which one has a part that starts so, else the one that is most alike.

    Parts are what ``-``, ``_`` and the like divide; case is no difference: ``u55`` begins a part of
    ``ethos-u55-128``.
    """
    names = list(known)
    start = "".join(_WORD.findall(came.lower()))
    begun = [name for name in names if len(start) > 1 and _begins_a_part(name, start)]
    if begun:
        return begun[:MOST_MEANT]
    import difflib  # which is wanted only where something is wrong

    alike = _same_product(came, names)
    if alike is not None:
        return [alike]
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(came.lower(), by_lower, n=1)
    return [by_lower[name] for name in close]


def _same_product(came: str, names: Iterable[str]) -> str | None:
    """Return the name that differs in its last number alone, the nearest: ethos-u55-512 is no U85.

    None where no name does.
    """
    stem, _, last = came.lower().rpartition("-")
    if not stem or not last.isdecimal():
        return None
    numbers = {
        int(number): name
        for name in names
        for begin, _, number in (name.lower().rpartition("-"),)
        if begin == stem and number.isdecimal()
    }
    if not numbers:
        return None
    return numbers[min(numbers, key=lambda number: abs(number - int(last[:LONGEST_NUMBER])))]


LONGEST_NUMBER = 9


def _begins_a_part(name: str, start: str) -> bool:
    parts = _WORD.findall(name.lower())
    return any("".join(parts[place:]).startswith(start) for place in range(len(parts)))


_WORD = re.compile(r"[^\W_]+")

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')

FRAMEWORK = ("torch", "torchao", "mizzen")
"""Packages whose files are not the user's."""


def source_line(trace: str) -> str | None:
    """Return the innermost line of the user's own files in a Python trace, as ``file.py:12``.

    Only the file's name: where a file lies on somebody's machine is not told.
    """
    frames = [
        f"{PurePath(path).name}:{line}"
        for path, line in _FRAME.findall(trace)
        if not path.startswith((*GENERATED, *_framework_folders()))
    ]
    return frames[-1] if frames else None


GENERATED = ("<eval_with_key>", "<string>")
"""What PyTorch calls the files of code that it makes."""


@cache
def _framework_folders() -> tuple[str, ...]:
    """Return where the packages of `FRAMEWORK` lie, links followed and not, with a separator."""
    specs = [find_spec(name) for name in FRAMEWORK]
    folders = [
        Path(folder)
        for spec in specs
        if spec is not None
        for folder in spec.submodule_search_locations or ()
    ]
    return tuple(f"{path}{os.sep}" for folder in folders for path in (folder, folder.resolve()))
