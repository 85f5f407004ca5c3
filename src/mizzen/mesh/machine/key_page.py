"""The reference page of machines: every key of their files, and those that are built in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

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


def _sections(prefix: str, model: type[BaseModel]) -> Iterator[str]:
    nested: list[tuple[str, type[BaseModel]]] = []
    lines: list[tuple[str, str, str, str]] = []
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        if inner is not None:
            place = f"{prefix}{name}"
            nested.append((f"{place}.NAME." if name == "element" else f"{place}.", inner))
            continue
        default = "required" if field.is_required() else f"`{field.get_default()!r}`"
        limits = _limits(schema["properties"][name])
        lines.append((f"`{prefix}{name}`", field.description or "", limits, default))
    title = f"### {prefix.rstrip('.')}" if prefix else "### The file"
    yield title
    yield (model.__doc__ or "").strip()
    yield _table(lines)
    for place, inner in nested:
        yield from _sections(place, inner)


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the table that a key is, that a list has, or that names lead to."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _limits(schema: dict[str, Any]) -> str:
    """Return the range of a key as its schema says it."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    above = "above " if "exclusiveMinimum" in schema else ""
    kind = schema.get("type", "")
    return f"{kind}, {above}{low:g} to {high:g}" if None not in (low, high) else kind


def _table(lines: list[tuple[str, str, str, str]]) -> str:
    head = "| Key | What | Range | Default |\n|---|---|---|---|"
    return "\n".join([head, *(f"| {' | '.join(line)} |" for line in lines)])
