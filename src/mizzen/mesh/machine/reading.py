"""Find, read and validate machines' files."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.diagnostics import MizzenError, fail
from mizzen.mesh.machine.building import build
from mizzen.mesh.machine.machine import Machine

if TYPE_CHECKING:
    from pydantic import ValidationError

FOLDER = Path(__file__).parent / "machines"
SUFFIX = ".toml"

LARGEST_FILE_BYTES = 1 << 20
"""No machine's file is nearly as long; what is longer is something else."""

SHOWN_CHARACTERS = 60


@cache
def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that are built in."""
    return tuple(sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}")))


@cache
def find_machine(name: str) -> Machine:
    """Return a machine by its name, or by the path of its file, which ends with ``.toml``.

    E561 for a file that cannot be read, E562 for what is wrong in it, E563 for a name that no
    machine has, E564 where pydantic is not installed.
    """
    if name.endswith(SUFFIX):
        return read_machine(Path(name))
    if name not in machine_names():
        close = difflib.get_close_matches(name, machine_names(), n=1)
        raise fail(
            "E563",
            f"the machine must be {', '.join(machine_names())} or a file .toml, not {name!r}",
            help=f"did you mean {close[0]}?" if close else None,
        )
    return read_machine(FOLDER / f"{name}{SUFFIX}")


def read_machine(path: Path) -> Machine:
    """Read a machine's file. E561 if it cannot be read, E562 for what is wrong in it."""
    content = _read(path)
    return parse_machine(content, path.name)


def parse_machine(content: bytes, name: str) -> Machine:
    """Make a machine of a file's content; `name` is what errors call the file."""
    try:
        from pydantic import ValidationError

        from mizzen.mesh.machine.file_format import MachineKeys
    except ImportError as error:
        raise fail(
            "E564",
            "machines of many elements need pydantic, which is not installed",
            help="install Mizzen with its extra mesh: pip install '.[mesh]' in its checkout",
        ) from error
    try:
        keys = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise fail("E561", f"{name} must be a TOML file: {error}") from error
    try:
        machine = MachineKeys.model_validate_json(json.dumps(keys, default=str))
    except ValidationError as error:
        raise _invalid(name, error) from error
    return build(machine, name, hashlib.sha256(content).hexdigest())


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise fail("E561", f"{path} must be a machine's file of at most 1 MiB")
        return path.read_bytes()
    except OSError as error:
        raise fail("E561", f"{path} must be readable: {error.strerror}") from error


def _invalid(name: str, error: ValidationError) -> MizzenError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    shown = repr(first["input"])
    if len(shown) > SHOWN_CHARACTERS:
        shown = shown[:SHOWN_CHARACTERS] + "..."
    more = error.error_count() - 1
    return fail(
        "E562",
        f"{name}, {place}: {first['msg'].lower()}, not {shown}"
        + (f"; {more} more like it" if more else ""),
        help="docs/reference/mesh-machines.md has every key with its unit and range",
    )
