"""Find, read and validate machines' files."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from mizzen.diagnostics import did_you_mean, fail
from mizzen.documents import content_of, parse, values_of
from mizzen.mesh.machine.building import FORM, build
from mizzen.mesh.machine.machine import Machine

FOLDER = Path(__file__).parent / "machines"
SUFFIX = ".toml"


@cache
def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that are built in."""
    return tuple(sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}")))


@cache
def find_machine(name: str) -> Machine:
    """Return a machine by its name, or by the path of its file, which ends with ``.toml``.

    E561 for a file that cannot be read, E562 for what is wrong in it, E563 for a name that no
    machine has.
    """
    if name.endswith(SUFFIX):
        return read_machine(Path(name))
    if name not in machine_names():
        raise fail(
            "E563",
            f"the machine must be {', '.join(machine_names())} or a file .toml, not {name!r}",
            help=did_you_mean(name, machine_names()),
        )
    return read_machine(FOLDER / f"{name}{SUFFIX}")


def read_machine(path: Path) -> Machine:
    """Read a machine's file. E561 if it cannot be read, E562 for what is wrong in it."""
    return parse_machine(content_of(path, FORM), path.name)


def parse_machine(content: bytes, name: str) -> Machine:
    """Make a machine of a file's content; `name` is what errors call the file."""
    from mizzen.mesh.machine.file_format import MachineKeys

    keys = parse(MachineKeys, values_of(content, name, FORM), name, FORM)
    return build(keys, name, hashlib.sha256(content).hexdigest())
