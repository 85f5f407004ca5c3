"""A table of a TOML file as its reader sees it: values by key, each of the type it must have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from mizzen.diagnostics import MizzenError, fail

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
SHOWN_CHARACTERS = 60


class Table:
    """Values of one table, taken by key; `finish` refuses what nobody took.

    file  name of the file, for messages
    path  the table's place in it, ``memory[2]``; empty for the file itself
    """

    def __init__(self, file: str, path: str, values: Mapping[str, object]) -> None:
        self._file = file
        self._path = path
        self._values = values
        self._taken: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the table says `key`."""
        return key in self._values

    def text(self, key: str) -> str:
        """Return a text of at least one character, on one line."""
        return self._line(key, self._take(key))

    def optional_text(self, key: str) -> str | None:
        """Return a text, or None where the key is left out."""
        return self.text(key) if self.has(key) else None

    def name(self, key: str) -> str:
        """Return a text that is an identifier of C and of linker scripts."""
        text = self.text(key)
        if not IDENTIFIER.fullmatch(text):
            raise self.wrong(key, "be letters, digits and _, a letter first", repr(text))
        return text

    def whole(self, key: str, least: int, greatest: int) -> int:
        """Return a whole number of a range."""
        return self._number(key, self._take(key), least, greatest)

    def wholes(self, key: str, count: int, greatest: int, *, least: int = 0) -> list[int]:
        """Return so many whole numbers, each of a range."""
        found = self._list(key)
        if len(found) != count:
            raise self.wrong(key, f"have {count} numbers", str(len(found)))
        return [self._number(key, value, least, greatest) for value in found]

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        value = self._take(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "be true or false", _shown(value))
        return value

    def choice(self, key: str, known: Sequence[str]) -> str:
        """Return a text that is one of those known."""
        return self._one_of(key, self._take(key), known)

    def choices(self, key: str, known: Sequence[str]) -> list[str]:
        """Return texts that are each one of those known."""
        return [self._one_of(key, value, known) for value in self._list(key)]

    def texts(self, key: str) -> list[str]:
        """Return texts, at least one."""
        return [self._line(key, value) for value in self._list(key)]

    def table(self, key: str) -> Table:
        """Return the table of that name."""
        value = self._take(key)
        if not isinstance(value, dict):
            raise self.wrong(key, f"be a table [{key}]", _shown(value))
        return Table(self._file, self._place(key), cast("dict[str, object]", value))

    def tables(self, key: str) -> list[Table]:
        """Return the tables of that name; none where the key is left out."""
        if not self.has(key):
            return []
        found: list[Table] = []
        for index, value in enumerate(self._list(key)):
            if not isinstance(value, dict):
                raise self.wrong(key, f"be tables [[{key}]]", _shown(value))
            values = cast("dict[str, object]", value)
            found.append(Table(self._file, self._place(f"{key}[{index}]"), values))
        return found

    def finish(self) -> None:
        """Refuse keys that nobody took: E412."""
        known = ", ".join(sorted(self._taken))
        for key in self._values:
            if key not in self._taken:
                raise fail(
                    "E412", f"{self._file}: a key must be one of {known}, not {self._place(key)}"
                )

    def wrong(self, key: str, must: str, came: str) -> MizzenError:
        """Say what must hold of a key: E411."""
        return fail("E411", f"{self._file}: {self._place(key)} must {must}, not {came}")

    def _take(self, key: str) -> object:
        self._taken.add(key)
        if key not in self._values:
            raise self.wrong(key, "be given", "left out")
        return self._values[key]

    def _list(self, key: str) -> list[object]:
        value = self._take(key)
        found = cast("list[object]", value if isinstance(value, list) else [])
        if not found:
            raise self.wrong(key, "be a list of at least one", _shown(self._values[key]))
        return found

    def _line(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable() or not value:
            raise self.wrong(key, "be a text on one line", _shown(value))
        return value

    def _number(self, key: str, value: object, least: int, greatest: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= greatest:
            raise self.wrong(key, f"be a whole number of {least}..{greatest}", _shown(value))
        return value

    def _one_of(self, key: str, value: object, known: Sequence[str]) -> str:
        if not isinstance(value, str) or value not in known:
            raise self.wrong(key, f"be one of {', '.join(known)}", _shown(value))
        return value

    def _place(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
