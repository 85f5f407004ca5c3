"""The architecture's rules, held by reading every import with `ast`: nothing is imported here.

Arrows point one way. What judges a stream must be able to disagree with what makes it, so it knows
nothing that lowers, schedules or emits. Files and functions stay small.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from .layer_rows import LAYERS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
MEASURED = [ROOT / name for name in ("src", "tests", "examples", "benchmarks", "docs")]

MAKES_STREAMS = re.compile(
    r"\.ethos_u\.(generator|cutting|vela|legal)\b"
    r"|\.ethos_n\.(lower|schedule|emit|compile|legal|patterns)\b"
    r"|^mizzen\.compiler"
)
"""What a judge must be able to disagree with."""

ETHOS_U = "mizzen.targets.ethos_u"
ROOMS: dict[str, tuple[str, ...]] = {
    "machine": (),
    "judge": ("machine",),
    "generator": ("machine", "judge"),
    "cutting": ("machine", "judge"),
    "vela": ("machine",),
    "legal": ("machine",),
}
"""The rooms of Ethos-U, and which others each imports: no row of LAYERS can add an arrow."""

# Third-party packages that cost time to import, or are not everywhere: inside functions only.
HEAVY = {
    "PIL", "ai_edge_litert", "ai_edge_quantizer", "elftools", "ethosu", "jinja2", "onnx",
    "onnxruntime", "ortools", "pymetis", "ray", "rich", "sklearn",
    "tflite_micro", "torch", "torchao", "unicorn",
}  # fmt: skip
# The one package all of whose files but the first extend classes of theirs.
MADE_OF_TORCH = "mizzen.quantize."

VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
FILE_LINES = 600
FUNCTION_LINES = 75
TABLES = {"tests/layer_rows.py"}

# Marks a name as a module's own: `from mizzen.isa import Command` depends on `mizzen.isa`.
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}


def measured_files() -> list[Path]:
    return [path for folder in MEASURED if folder.is_dir() for path in folder.rglob("*.py")]


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Return the full name of everything imported anywhere in a file, names in modules included."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str() as module, level=0):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.ImportFrom():
                raise AssertionError(f"line {node.lineno}: imports are absolute")
            case _:
                pass


def module_of(name: str) -> str:
    """Return the module that holds `name`, which may be a module itself or a name in one."""
    return name if name in MODULES else name.rpartition(".")[0]


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@cache
def row_of(module: str) -> str:
    """Return the most specific row of LAYERS for a module; every module has one."""
    return max((row for row in LAYERS if within(module, row)), key=len)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a file's syntax, which several tests walk."""
    return ast.parse(path.read_text())


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules of Mizzen that a module imports anywhere, itself left out."""
    tree = tree_of(MODULES[module])
    names = {module_of(name) for name in imported_names(tree) if within(name, "mizzen")}
    return frozenset(names - {module})


def covered(imported: str, entry: str) -> bool:
    """Whether an entry of a row is about a module: it is in that package, under no other row."""
    return within(imported, entry) and (entry not in LAYERS or row_of(imported) == entry)


def wrong_imports(row: str, members: Sequence[str]) -> list[str]:
    return [
        f"{module} may not import {name}"
        for module in members
        for name in sorted(imports_of(module))
        if row_of(name) != row and not any(covered(name, entry) for entry in LAYERS[row])
    ]


def idle_entries(row: str, members: Sequence[str]) -> list[str]:
    imported = {name for module in members for name in imports_of(module)}
    return [
        f"nothing of {row} imports {entry}"
        for entry in LAYERS[row]
        if not any(covered(name, entry) for name in imported)
    ]


def test_imports_point_one_way() -> None:
    """All rows in one test, whose process alone reads all modules."""
    members = {row: [name for name in MODULES if row_of(name) == row] for row in LAYERS}
    assert all(members.values()), [row for row, modules in members.items() if not modules]
    assert not [found for row in LAYERS for found in wrong_imports(row, members[row])]
    assert not [found for row in LAYERS for found in idle_entries(row, members[row])]


def test_rows_name_only_rows_above_them() -> None:
    order = list(LAYERS)
    upward = [
        f"{row} -> {entry}"
        for row in LAYERS
        for entry in LAYERS[row]
        if order.index(row_of(entry)) >= order.index(row)
    ]
    assert not upward


def test_modules_import_in_no_circle() -> None:
    """Take away what imports nothing that is left, again and again; a circle stays."""
    left = {module: set(imports_of(module)) for module in MODULES}
    while free := [module for module, needed in left.items() if not needed & left.keys()]:
        for module in free:
            del left[module]
    assert not left


def test_the_root_is_small() -> None:
    modules = sorted(path.name for path in (SOURCE / "mizzen").glob("*.py"))
    assert modules == ["__init__.py", "__main__.py", "diagnostics.py"]


def room_of(module: str) -> str:
    """Return the room of a module of Ethos-U; nothing for the package itself."""
    return module.removeprefix(ETHOS_U).strip(".").partition(".")[0]


def test_arrows_between_the_rooms_of_ethos_u() -> None:
    members = [module for module in MODULES if within(module, ETHOS_U)]
    assert {room_of(module) for module in members} == {"", *ROOMS}, "every module is in a room"
    found = {
        (room_of(module), room_of(name))
        for module in members
        for name in imports_of(module)
        if within(name, ETHOS_U) and room_of(name) != room_of(module)
    }
    assert found == {(room, other) for room, others in ROOMS.items() for other in others}


@pytest.mark.parametrize("judge", ["ethos_u.judge", "ethos_n.sim"])
def test_nothing_that_a_judge_reaches_makes_streams(judge: str) -> None:
    seen: set[str] = set()
    pending = [name for name in MODULES if within(name, f"mizzen.targets.{judge}")]
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending += imports_of(module)
    wrong = sorted(module for module in seen if MAKES_STREAMS.search(module))
    assert not wrong, f"{judge} reaches {', '.join(wrong)}"


def test_heavy_packages_are_imported_inside_functions() -> None:
    outside = [
        f"{module}: {name}"
        for module in MODULES
        if MADE_OF_TORCH not in module
        for statement in tree_of(MODULES[module]).body
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for name in imported_names(ast.Module([statement], []))
        if name.partition(".")[0] in HEAVY
    ]
    assert not outside


def test_no_module_has_a_vague_name() -> None:
    vague = [str(path) for path in MODULES.values() if VAGUE_NAMES & {path.stem, path.parent.name}]
    assert not vague, "a module is named after the thing it holds"


def test_every_folder_of_the_source_is_a_package() -> None:
    folders = {path.parent for path in MODULES.values()} - {SOURCE}
    missing = [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()]
    assert not missing


def test_files_are_short() -> None:
    lengths = {str(path.relative_to(ROOT)): path.read_text() for path in measured_files()}
    long = {
        name: text.count("\n")
        for name, text in lengths.items()
        if text.count("\n") > FILE_LINES and name not in TABLES
    }
    assert not long, f"over {FILE_LINES} lines"


def test_tables_are_still_there_and_long() -> None:
    """An exception that nothing needs any more goes."""
    needless = [name for name in TABLES if (ROOT / name).read_text().count("\n") <= FILE_LINES]
    assert not needless


def test_functions_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines} lines"
        for path in measured_files()
        if path.read_text().count("\n") > FUNCTION_LINES
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long, f"over {FUNCTION_LINES} lines"
