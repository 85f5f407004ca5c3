"""Pages of the documentation that are made from the program itself, when the site is built.

mkdocs calls `on_files`; the pages exist in the site only, so that none can be out of date.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import mizzen
from mizzen.cli.parser import help_texts
from mizzen.isa import documentation
from mizzen.targets.ethos_u.commands import Arch, instruction_set

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Give every generated page: path in the documentation -> Markdown."""
    commands = {
        f"reference/commands-{arch.name.lower()}.md": documentation.markdown(instruction_set(arch))
        for arch in Arch
    }
    return {
        "reference/command-line.md": command_line_page(),
        "reference/python.md": python_page(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(),
        **commands,
    }


def command_line_page() -> str:
    """Give the help of the program and of every verb, as it is printed 80 columns wide."""
    os.environ["COLUMNS"] = "80"
    parts = ["# Command line"]
    for name, text in help_texts().items():
        parts += [f"## {name}", f"```text\n$ {name} --help\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """Give every public name with its signature, fields, methods and docstrings."""
    parts = ["# Python", inspect.cleandoc(mizzen.__doc__ or "")]
    for name in sorted(mizzen.__all__, key=str.lower):
        value: object = getattr(mizzen, name)
        if inspect.isclass(value):
            parts += class_parts(name, value)
        elif callable(value):
            parts += [f"## {name}", _signature(f"mizzen.{name}", value), _doc(value)]
    return "\n\n".join(part for part in parts if part) + "\n"


def class_parts(name: str, value: type[object]) -> Iterator[str]:
    """Give the parts of a class: its docstring, its fields, its public methods and properties."""
    yield f"## {name}"
    yield _doc(value)
    if is_dataclass(value):
        rows = "\n".join(f"| `{field.name}` | `{field.type}` |" for field in fields(value))
        yield f"| Field | Type |\n|---|---|\n{rows}"
    for member_name, member in vars(value).items():
        if member_name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### {name}.{member_name}"
            yield _doc(member)
        elif inspect.isfunction(member):
            yield f"### {name}.{member_name}()"
            yield _signature(member_name, member)
            yield _doc(member)


def _signature(name: str, value: object) -> str:
    if not callable(value):
        return ""
    return f"```python\n{name}{inspect.signature(value)}\n```"


def _doc(value: object) -> str:
    return inspect.getdoc(value) or ""
