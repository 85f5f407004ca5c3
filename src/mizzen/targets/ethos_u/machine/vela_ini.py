"""The syntax of `vela.ini` files: sections of keys, and one section inheriting another.

Ref: Vela 5.2.0, OPTIONS.md ("Configuration File"); Python's ConfigParser without interpolation.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mizzen.diagnostics import MizzenError, did_you_mean, fail

BUNDLED = "Arm/vela.ini"
"""The file that Vela brings, by the name that its users give it."""

SYSTEMS = Path(__file__).with_name("systems.ini")
"""What that file says, so that it need not be there."""

LARGEST_FILE_BYTES = 1 << 20
"""No file of sections is nearly as long; what is longer is something else."""

INHERIT = "inherit"


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of a key, and the file and section that say it."""

    value: str
    file: str
    section: str

    @property
    def source(self) -> str:
        """The place, as a person reads it."""
        return f"{self.file} [{self.section}]"


@dataclass(frozen=True, slots=True)
class Section:
    """A section with what it inherits."""

    source: str
    entries: dict[str, Entry]

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, in any case; None if the section does not say it."""
        return self.entries.get(key.lower())


@dataclass(slots=True)
class Sections:
    """The sections of several files read as one, before inheritance."""

    files: tuple[str, ...]
    entries: dict[str, dict[str, Entry]] = field(default_factory=dict[str, dict[str, Entry]])

    def names(self) -> list[str]:
        """Name the sections, in the order of the files."""
        return list(self.entries)

    def resolve(self, name: str) -> Section:
        """Return a section with all that it inherits.

        Raises E215 for a section that inherits an unknown one, E216 for one that inherits itself
        in the end.
        """
        chain = [name]
        while (heir := self.entries[chain[-1]].get(INHERIT)) is not None:
            parent = heir.value
            if parent in chain:
                circle = " -> ".join([*chain[chain.index(parent) :], parent])
                raise fail("E216", f"{heir.source}: inheritance must end, but goes {circle}")
            if parent not in self.entries:
                raise self._no_parent(heir)
            chain.append(parent)
        merged: dict[str, Entry] = {}
        for ancestor in reversed(chain):
            merged |= self.entries[ancestor]
        merged.pop(INHERIT, None)
        first = next(iter(self.entries[name].values()), None)
        source = first.source if first else f"{', '.join(self.files)} [{name}]"
        return Section(source, merged)

    def _no_parent(self, heir: Entry) -> MizzenError:
        message = f"{heir.source}: inherit must name a section of the files, not {heir.value!r}"
        return fail("E215", message, help=did_you_mean(heir.value, self.entries))


def read_files(names: Sequence[str]) -> Sections:
    """Read files as one. E213 for a file that cannot be read, E214 for one that is malformed."""
    sections = Sections(tuple(names))
    for name in names:
        parser = _parse(name, _text(name))
        for section in parser.sections():
            known = sections.entries.setdefault(section, {})
            known.update({key: Entry(value, name, section) for key, value in parser.items(section)})
    return sections


def _find(name: str) -> Path:
    """Return the path of a file by its name: `Arm/vela.ini`, or any path."""
    return SYSTEMS if name == BUNDLED else Path(os.path.expanduser(name))


def _text(name: str) -> str:
    path = _find(name)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
        if len(data) > LARGEST_FILE_BYTES:
            raise fail("E214", f"{name} must be a vela.ini file, but is over a MiB long")
        return data.decode("utf-8-sig")  # editors on Windows begin a file with a mark
    except (OSError, ValueError) as reason:
        if isinstance(reason, UnicodeDecodeError):
            raise fail("E214", f"{name} must be a vela.ini file, but is no text") from None
        raise _unreadable(name, reason) from None


def _unreadable(name: str, reason: Exception) -> MizzenError:
    why = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return fail(
        "E213",
        f"the configuration file {name} must be readable: {why[:1].lower() + why[1:]}",
        help=f"give the path of a file, or {BUNDLED}, which Mizzen knows",
    )


def _parse(name: str, text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True, allow_no_value=False)
    try:
        parser.read_string(text, name)
    except configparser.DuplicateSectionError as error:
        raise _malformed(name, error.lineno, f"[{error.section}] is there twice") from None
    except configparser.DuplicateOptionError as error:
        reason = f"{error.option} is there twice in [{error.section}]"
        raise _malformed(name, error.lineno, reason) from None
    except configparser.MissingSectionHeaderError as error:
        raise _malformed(name, error.lineno, "it must follow a [section]") from None
    except configparser.ParsingError as error:
        line = error.errors[0][0] if error.errors else None
        raise _malformed(name, line, "it must be `key=value` or [section]") from None
    return parser


def _malformed(name: str, line: int | None, reason: str) -> MizzenError:
    place = name if line is None else f"{name}, line {line}"
    return fail("E214", f"{place}: a configuration file must be well-formed, but {reason}")
