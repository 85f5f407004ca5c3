"""Read a file by its form and its model, and say what is wrong with it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    from mizzen.documents.checking import WrongValue
    from mizzen.documents.model import Section

Model = TypeVar("Model", bound="Section")


class Syntax(Enum):
    """How values are written; the value is its name."""

    TOML = "TOML"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of file, and the codes of what can be wrong with one.

    what           the file, for errors: ``a board's file in TOML``
    unreadable     it cannot be read, or is not of the syntax
    wrong          a value is not what it must be
    unknown        a key that there is not; `wrong` where None
    largest_bytes  no file is nearly as long; what is longer is something else
    wording        how an error reads; mesh's own checks say it the other way round
    """

    what: str
    syntax: Syntax
    unreadable: str
    wrong: str
    unknown: str | None = None
    largest_bytes: int = 1 << 20
    help: str | None = None
    wording: str = "{name}: {place} must {must}"

    def error(self, name: str, place: str, must: str, came: object) -> MizzenError:
        """Return the error for a value that is not what it must be."""
        text = self.wording.format(name=name, place=place, must=must)
        return fail(self.wrong, f"{text}, not {came}", help=self.help)

    def refusal(self, name: str, reason: str) -> MizzenError:
        """Return the error for a file that cannot be read."""
        return fail(self.unreadable, f"{name} must be {self.what}: {reason}", help=self.help)


def content_of(path: Path, form: Form) -> bytes:
    """Return the bytes of a file, of which there may only be so many."""
    try:
        with path.open("rb") as file:
            content = file.read(form.largest_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        reason = error.strerror if isinstance(error, OSError) else None
        raise form.refusal(str(path), reason or str(error)) from None
    if len(content) > form.largest_bytes:
        reason = f"it must have at most {form.largest_bytes:,} bytes"
        raise form.refusal(str(path), reason)
    return content


def values_of(content: bytes, name: str, form: Form) -> dict[str, object]:
    """Return the values of a file that is a table, none of them checked."""
    try:
        text = content.decode("utf-8")
        values: object = tomllib.loads(text) if form.syntax is Syntax.TOML else json.loads(text)
    except RecursionError:
        raise form.refusal(name, "nested too deeply") from None
    except ValueError as error:
        raise form.refusal(name, str(error)) from None
    if not isinstance(values, dict):
        raise form.refusal(name, "it must be an object")
    return cast("dict[str, object]", values)


def parse(model: type[Model], values: bytes | Mapping[str, object], name: str, form: Form) -> Model:
    """Return the keys of a file, as a model takes them: of JSON, or of values.

    The error is of the first value that is wrong.
    """
    from mizzen.documents.checking import WrongValue, checked

    given = values_of(values, name, form) if isinstance(values, bytes) else values
    try:
        return checked(model, given)
    except WrongValue as wrong:
        raise _error(wrong, name, form) from None


def _error(wrong: WrongValue, name: str, form: Form) -> MizzenError:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in wrong.place)
    place = "".join(parts).lstrip(".") or "the file"
    if wrong.known:
        message = f"{name}: a key must be one of {', '.join(wrong.known)}, not {place}"
        return fail(form.unknown or form.wrong, message, help=form.help)
    return form.error(name, place, wrong.must, wrong.came)
