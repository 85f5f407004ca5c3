"""The reference page of machines: every key of their files, and those that are built in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args, get_origin

from mizzen.documents.checking import Plain, keys_of, plain, section_in
from mizzen.documents.model import DESCRIPTION, Section
from mizzen.mesh.machine.file_format import MachineKeys
from mizzen.mesh.machine.reading import FOLDER, find_machine, machine_names


def markdown() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Machines of many elements",
        "A machine is a TOML file with these keys. Every key is validated, and an unknown key is "
        "an error. Rates have the unit at the end of their names, sizes are in bytes, and places "
        "are `[column, row]`.",
        "## Keys",
        *_sections("", MachineKeys),
        "## Built in",
    ]
    for name in machine_names():
        machine = find_machine(name)
        parts += [f"### {name}", f"{machine.description[:1].upper()}{machine.description[1:]}."]
        parts.append(f"```toml\n{(FOLDER / f'{name}.toml').read_text().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _sections(prefix: str, model: type[Section]) -> Iterator[str]:
    nested: list[tuple[str, type[Section]]] = []
    lines: list[tuple[str, str, str, str]] = []
    for name, key in keys_of(model).items():
        wanted = plain(key.kind)
        inner = section_in(key.kind)
        if inner is not None:
            place = f"{prefix}{name}"
            nested.append((f"{place}.NAME." if name == "element" else f"{place}.", inner))
            continue
        default = "required" if key.is_required else f"`{key.field.default!r}`"
        description = key.field.metadata.get(DESCRIPTION, "")
        lines.append((f"`{prefix}{name}`", description, _limits(wanted), default))
    title = f"### {prefix.rstrip('.')}" if prefix else "### The file"
    yield title
    yield (model.__doc__ or "").strip()
    yield _table(lines)
    for place, inner in nested:
        yield from _sections(place, inner)


WORDS = {int: "integer", float: "number", str: "string"}


def _limits(wanted: Plain) -> str:
    """Return the range of a key."""
    if get_origin(wanted.kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(wanted.kind))
    limits = wanted.limits
    low = limits.gt if limits.ge is None else limits.ge
    high = limits.lt if limits.le is None else limits.le
    above = "" if limits.gt is None else "above "
    word = WORDS.get(wanted.kind, "array")
    return word if low is None or high is None else f"{word}, {above}{low:g} to {high:g}"


def _table(lines: list[tuple[str, str, str, str]]) -> str:
    head = "| Key | What | Range | Default |\n|---|---|---|---|"
    return "\n".join([head, *(f"| {' | '.join(line)} |" for line in lines)])
