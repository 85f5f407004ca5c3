"""Jobs that have one place: where reports are built, refusals sought, options named."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "mizzen"


@cache
def trees(word: str) -> dict[str, ast.Module]:
    """Return the syntax of each file of Mizzen that has a word."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(text)
        for path, text in texts.items()
        if word in text
    }


def files_with(word: str, found: Callable[[ast.AST], bool]) -> set[str]:
    """Return the files in which something with a word is found."""
    return {name for name, tree in trees(word).items() if any(map(found, ast.walk(tree)))}


def callers(name: str) -> set[str]:
    """Return the files that call what has a name."""
    return files_with(
        name,
        lambda node: (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        ),
    )


def test_compile_reports_are_built_joined_and_read_in_one_place_each() -> None:
    assert callers("CompileReport") == {
        "compiler/report.py",
        "compiler/subgraphs/reports.py",
        "report/compilation.py",
    }


def test_refusals_are_sought_in_one_place() -> None:
    """Whoever looks for what a compiler refuses asks the search; nobody halves parts himself."""
    searches = ("RefusalSearch", "settle")
    users = {name: callers(name) for name in searches}
    assert users == {
        "RefusalSearch": {
            "compiler/ethos_u/regions.py",
            "compiler/ethos_u/tosa.py",
            "compiler/ethos_n/regions.py",
            "compiler/placement.py",
        },
        "settle": {"compiler/placement.py", "compiler/ethos_u/tosa.py"},
    }


def test_options_go_whole_from_users_to_backends() -> None:
    """An option of the system is named as a parameter only where the system is resolved."""
    named = [
        f"{name}: {node.name}"
        for name, tree in trees("arena_cache_size").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in (*node.args.args, *node.args.kwonlyargs)
        if argument.arg == "arena_cache_size"
    ]
    assert {row.partition(":")[0] for row in named} == {"targets/ethos_u/machine/system_config.py"}
    assert len(named) <= 4


def test_there_is_one_default_accelerator() -> None:
    def assigns(node: ast.AST) -> bool:
        return isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "DEFAULT_ACCELERATOR"
            for target in node.targets
        )

    assert files_with("DEFAULT_ACCELERATOR", assigns) == {"compiler/options.py"}
