"""The table of tuned numbers: each has its unit, its meaning, and figures of the benchmark."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mizzen.targets.ethos_u.generator import tuned

TABLE = Path(tuned.__file__)
FORM = re.compile(r"\[[a-z ,]+\] .+ Judged by (`\w+`(?:, `\w+`)*)\.", re.DOTALL)


def entries() -> dict[str, str]:
    """Return the name of each number, and what is said of it."""
    body = ast.parse(TABLE.read_text()).body
    said: dict[str, str] = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    said[node.targets[0].id] = text
                case _:
                    said[node.targets[0].id] = ""
    return said


@pytest.mark.parametrize(("name", "said"), entries().items())
def test_numbers_say_what_they_are(repository: Path, name: str, said: str) -> None:
    form = FORM.fullmatch(" ".join(said.split()))
    assert form is not None, f"{name}: [unit] meaning. Judged by `figure`."
    benchmark = (repository / "benchmarks" / "generator.py").read_text()
    figures = re.findall(r"`(\w+)`", form[1])
    assert all(f"`{figure}`" in benchmark for figure in figures)


def test_every_number_is_used(repository: Path) -> None:
    """A number that nothing reads is a number of nothing."""
    folder = repository / "src" / "mizzen" / "targets" / "ethos_u" / "generator"
    texts = [path.read_text() for path in folder.rglob("*.py")]
    unused = [
        name
        for name in entries()
        if sum(len(re.findall(rf"\b{name}\b", text)) for text in texts) < 2
    ]
    assert not unused
