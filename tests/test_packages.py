"""Each package says what it is for, why it is built so, and what it must not know."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
NAMES = [str(path.relative_to(SOURCE)) for path in PACKAGES]
LEAST_LINES = 5
FILES = {name for path in SOURCE.rglob("*.py") for name in (path.stem, path.parent.name)}


def docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""


def files_of(module: str) -> list[Path]:
    path = SOURCE / module.replace(".", "/")
    return [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()]


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_a_package_says_what_it_is_for(package: Path) -> None:
    text = docstring(package)
    assert len(text.splitlines()) >= LEAST_LINES, text


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_what_a_package_names_is_there(package: Path) -> None:
    """Names without a dot are of files, or of code here or within; others are Mizzen's modules."""
    text = docstring(package)
    files = list(package.rglob("*.py"))
    code = "\n".join(path.read_text().replace(text, "") for path in files)
    for name in re.findall(r"`([a-z_A-Z0-9]+)`", text):
        assert name in FILES or re.search(rf"\b{name}\b", code), name
    for name in re.findall(r"`(mizzen[.\w]+)`", text):
        parent, _, last = name.rpartition(".")
        holders = [path.read_text() for path in files_of(parent)]
        assert files_of(name) or any(re.search(rf"\b{last}\b", text) for text in holders), name


def test_nothing_says_to_install_a_name_that_anybody_may_take() -> None:
    """No index has a package of Mizzen's: whoever takes its name there would be installed."""
    root = SOURCE.parent
    files = [*SOURCE.rglob("*.py"), *(root / "docs").rglob("*.md"), root / "README.md"]
    named = re.compile(r"pip install (?:-\S+ )*['\"]?mizzen\b")
    assert not [path.name for path in files if named.search(path.read_text())]
