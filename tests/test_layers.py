"""The architecture's rules, held by reading every import with `ast`: nothing is imported here.

Arrows point one way. The simulator must be able to disagree with the compiler, so it knows
nothing that lowers, schedules or emits. Files and functions stay small.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
MEASURED = [ROOT / name for name in ("src", "tests", "examples", "benchmarks", "docs")]

ETHOS_U = "mizzen.targets.ethos_u"
ETHOS_N = "mizzen.targets.ethos_n"

# Package -> what it may import of Mizzen besides itself. The most specific row holds.
LAYERS: dict[str, tuple[str, ...]] = {
    "mizzen.diagnostics": (),
    "mizzen.flatbuffer": ("mizzen.diagnostics",),
    "mizzen.isa": ("mizzen.diagnostics",),
    "mizzen.graph": ("mizzen.diagnostics",),
    "mizzen.ops": ("mizzen.diagnostics", "mizzen.graph"),
    "mizzen.reference": ("mizzen.diagnostics", "mizzen.graph", "mizzen.ops"),
    "mizzen.patterns": ("mizzen.diagnostics", "mizzen.graph", "mizzen.ops"),
    "mizzen.passes": (
        "mizzen.diagnostics",
        "mizzen.graph",
        "mizzen.ops",
        "mizzen.patterns",
        "mizzen.reference",
    ),
    "mizzen.partition": ("mizzen.diagnostics", "mizzen.graph", "mizzen.ops", "mizzen.patterns"),
    "mizzen.quantize": ("mizzen.diagnostics", f"{ETHOS_U}.system_config", f"{ETHOS_U}.config"),
    "mizzen.frontends": ("mizzen.diagnostics", "mizzen.flatbuffer", "mizzen.graph", "mizzen.ops"),
    "mizzen.package": ("mizzen.diagnostics", "mizzen.flatbuffer", "mizzen.graph", "mizzen.ops"),
    "mizzen.cpu": ("mizzen.diagnostics", "mizzen.flatbuffer"),
    "mizzen.report": ("mizzen.diagnostics",),
    "mizzen.targets": ("mizzen.diagnostics", "mizzen.graph", "mizzen.isa", "mizzen.ops"),
    "mizzen.torch": (
        "mizzen.artifact.artifact",
        "mizzen.compiler.registry",
        "mizzen.diagnostics",
        "mizzen.flatbuffer",
        "mizzen.frontends",
        "mizzen.graph",
        "mizzen.artifact.host_steps",
        "mizzen.package",
        "mizzen.partition",
        "mizzen.passes",
        "mizzen.compiler.placement",
        "mizzen.quantize",
        "mizzen.compiler.codegen",
        "mizzen.report",
        "mizzen.targets",
    ),
    "mizzen.compiler.registry": (),
    "mizzen.conformance": (
        "mizzen.artifact.artifact",
        "mizzen.cpu",
        "mizzen.diagnostics",
        "mizzen.compiler.ethos_u.cpu_fallback",
        "mizzen.frontends",
        "mizzen.package",
        "mizzen.compiler.ethos_u.report",
        f"{ETHOS_U}.commands",
        f"{ETHOS_U}.compiled",
        f"{ETHOS_U}.config",
        f"{ETHOS_U}.generate",
    ),
    f"{ETHOS_U}.sim": (
        "mizzen.diagnostics",
        "mizzen.isa",
        f"{ETHOS_U}.commands",
        f"{ETHOS_U}.config",
        f"{ETHOS_U}.program",
    ),
    f"{ETHOS_U}.hazards": (
        "mizzen.diagnostics",
        "mizzen.isa",
        f"{ETHOS_U}.commands",
        f"{ETHOS_U}.config",
        f"{ETHOS_U}.program",
    ),
    # It judges what compilers emit and simulators run, so it knows neither.
    f"{ETHOS_N}.patterns": (
        "mizzen.diagnostics",
        "mizzen.graph",
        "mizzen.ops",
        "mizzen.partition",
        "mizzen.passes",
        "mizzen.patterns",
        f"{ETHOS_N}.config",
        f"{ETHOS_N}.legal",
        f"{ETHOS_N}.network",
        f"{ETHOS_N}.tensors",
    ),
    f"{ETHOS_N}.reference": (
        "mizzen.diagnostics",
        f"{ETHOS_N}.network",
        f"{ETHOS_N}.tensors",
    ),
    # The two share the table of the stream's fields, and nothing that reads or writes them.
    f"{ETHOS_N}.weights": (
        "mizzen.diagnostics",
        f"{ETHOS_N}.commands_values",
        f"{ETHOS_N}.config",
        f"{ETHOS_N}.program",
        f"{ETHOS_N}.tensors",
    ),
    f"{ETHOS_N}.sim": (
        "mizzen.diagnostics",
        "mizzen.isa",
        f"{ETHOS_N}.commands",
        f"{ETHOS_N}.commands_values",
        f"{ETHOS_N}.config",
        f"{ETHOS_N}.program",
        f"{ETHOS_N}.tensors",
        f"{ETHOS_N}.weights.format",
    ),
    f"{ETHOS_N}.lower": (
        "mizzen.diagnostics",
        f"{ETHOS_N}.commands_values",
        f"{ETHOS_N}.config",
        f"{ETHOS_N}.network",
        f"{ETHOS_N}.tensors",
    ),
    f"{ETHOS_N}.schedule": (
        "mizzen.diagnostics",
        f"{ETHOS_N}.commands_values",
        f"{ETHOS_N}.config",
        f"{ETHOS_N}.lower",
        f"{ETHOS_N}.tensors",
    ),
    "mizzen.cli": (
        "mizzen.artifact.artifact",
        "mizzen.compiler.registry",
        "mizzen.compiler.check",
        "mizzen.conformance",
        "mizzen.diagnostics",
        "mizzen.artifact.host_steps",
        "mizzen.isa",
        "mizzen.report",
        "mizzen.compiler.torch.pt2",
        "mizzen.torch.lowering",
        f"{ETHOS_U}.system_config",
    ),
    "mizzen.__main__": ("mizzen.cli",),
}
JOINING = "mizzen.compiler.registry"
"""Its modules join everything below the command line, as the root's own do."""
NOT_BELOW_THE_ROOT = ("mizzen.cli", "mizzen.__main__")

# Third-party packages that cost time to import, or are not everywhere: inside functions only.
HEAVY = {"ai_edge_litert", "ethosu", "rich", "sklearn", "tflite_micro", "torch", "torchao"}
# The one package all of whose files but the first extend classes of theirs.
MADE_OF_TORCH = "mizzen.quantize."

VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
FILE_LINES = 600
FUNCTION_LINES = 75
TABLES: set[str] = set()

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


def row_of(module: str) -> str | None:
    """Return the most specific row of LAYERS for a module; the package root has none."""
    rows = [row for row in LAYERS if within(module, row)]
    return max(rows, key=len, default=None)


def allowed(importer: str, imported: str) -> bool:
    row = row_of(importer)
    if row is None or row == JOINING:
        return not any(within(imported, package) for package in NOT_BELOW_THE_ROOT)
    if within(imported, row):
        return True
    if imported == "mizzen":  # the public verbs, which the command line calls
        return row == "mizzen.cli"
    return any(within(imported, package) for package in LAYERS[row])


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text())
    ours = {module_of(name) for name in imported_names(tree) if within(name, "mizzen")}
    wrong = sorted(name for name in ours if not allowed(module, name))
    assert not wrong, f"{module} may not import {', '.join(wrong)}"


def test_every_package_has_a_row() -> None:
    packages = {f"mizzen.{path.parent.name}" for path in (SOURCE / "mizzen").glob("*/__init__.py")}
    assert not packages - set(LAYERS)


@pytest.mark.parametrize("family", [ETHOS_U, ETHOS_N])
def test_the_simulator_rule_reaches_through_what_it_imports(family: str) -> None:
    """Nothing the simulator imports, directly or not, lowers, schedules, emits or reads files."""
    seen: set[str] = set()
    waiting = [name for name in MODULES if within(name, f"{family}.sim")]
    while waiting:
        module = waiting.pop()
        if module in seen or module not in MODULES:
            continue
        seen.add(module)
        tree = ast.parse(MODULES[module].read_text())
        waiting += [module_of(name) for name in imported_names(tree) if within(name, "mizzen")]
    known = LAYERS[f"{family}.sim"] + (f"{family}.sim",)
    # The tables of commands are several files: commands, commands_rows, commands_values.
    wrong = [
        name
        for name in sorted(seen)
        if not any(within(name, package) or name.startswith(f"{package}_") for package in known)
    ]
    assert not wrong, f"the simulator reaches {', '.join(wrong)}"


@pytest.mark.parametrize("module", [name for name in MODULES if MADE_OF_TORCH not in name])
def test_heavy_packages_are_imported_inside_functions(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text())
    outside = [
        name
        for statement in tree.body
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for name in imported_names(ast.Module([statement], []))
    ]
    heavy = sorted({name.partition(".")[0] for name in outside} & HEAVY)
    assert not heavy, f"{module} imports {', '.join(heavy)} outside a function"


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
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long, f"over {FUNCTION_LINES} lines"
