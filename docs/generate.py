"""Pages of the documentation that are made from the program itself, when the site is built.

mkdocs calls `on_files`; the pages exist in the site only, so that none can be out of date.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import mizzen
from mizzen.boards import how_to, reference_page
from mizzen.cli.parser import help_texts
from mizzen.compiler.backend import backend_for
from mizzen.isa import listing
from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

    from mizzen.targets.ethos_n.network import Operation as EthosNOperation

LINE_WIDTH = 88
_FAMILIES = {
    "aten": "PyTorch, core ATen",
    "mizzen": "Mizzen",
    "quantized_decomposed": "PyTorch, quantisation",
    "tflite": "TFLite",
}
COLUMNS = re.compile(r"^\S.* {2,}\S", re.MULTILINE)
ROOT = Path(__file__).resolve().parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Return every generated page: path in the documentation -> Markdown."""
    commands = {
        f"reference/commands-{arch.name.lower()}.md": listing.markdown(instruction_set(arch))
        for arch in Arch
    }
    return {
        "reference/command-line.md": command_line_page(),
        "reference/python.md": python_page(),
        "reference/pytorch.md": pytorch_page(),
        "reference/codes.md": codes_page(),
        "reference/accelerators.md": accelerators_page(),
        "reference/operators.md": operators_page(),
        "reference/tosa-operations.md": tosa_page(),
        "reference/ethos-n-operations.md": ethos_n_page(),
        "reference/ethos-n-composites.md": ethos_n_composites_page(),
        "reference/commands-ethos-n.md": ethos_n_commands_page(),
        "reference/c-runtime.md": c_runtime_page(),
        "reference/boards.md": reference_page.markdown(),
        **{f"how-to/boards/{name}.md": text for name, text in how_to.pages().items()},
        "changelog.md": (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "]("),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(),
        **commands,
    }


def command_line_page() -> str:
    """Return the help of the program and of every verb, as it is printed 80 columns wide."""
    os.environ["COLUMNS"] = "80"
    parts = ["# Command line", "This page has the help of every verb: `mizzen help VERB`."]
    for name, text in help_texts().items():
        parts += [f"## {name}", f"```text\n$ {name} --help\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def accelerators_page() -> str:
    """Return the accelerators, what is taken when nothing is asked for, and the bundled file."""
    from mizzen.targets.ethos_u.machine.config import ACCELERATORS, TRAITS
    from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED, SYSTEMS

    accelerators = [
        (f"`{row.name}`", row.macs, row.cores, row.shram_kib or "-", f"`{row.config_word:#010x}`")
        for row in ACCELERATORS.values()
    ]
    families = [
        (arch.value, f"`{row.system_config}`", f"`{row.memory_mode}`")
        for arch, row in TRAITS.items()
    ]
    parts = [
        "# Accelerators and configurations",
        "## Accelerators",
        "These are the names for `--accelerator-config`. MACs are 8-bit multiply-accumulates per "
        "cycle over all cores. The shared buffer is in KiB, over all cores too. The driver "
        "compares the CONFIG word with the hardware.",
        _table(("Name", "MACs", "Cores", "Shared buffer", "CONFIG"), accelerators),
        "## Defaults",
        _table(("NPU", "System configuration", "Memory mode"), families),
        f"## {BUNDLED}",
        "This file is read if `--config` names no other.",
        f"```ini\n{SYSTEMS.read_text().rstrip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def operators_page() -> str:
    """Return the operators that an NPU has a form of, and the rules that they must keep to."""
    support = backend_for("ethos-u55-128").support(None)
    kinds = [(f"`{kind}`", ", ".join(npus)) for kind, npus in support.operators.items()]
    parts = [
        "# Operators",
        "These TFLite operators can run on the NPU, if they keep to the rules below. `mizzen "
        "check` shows for your network if anything else keeps an operator from the NPU.",
        _table(("Operator", "NPU"), kinds),
        "## Rules",
    ]
    for rule in support.rules:
        scope = ", ".join(f"`{kind}`" for kind in sorted(rule.operators))
        rows = [
            ("NPU", ", ".join(rule.npus)),
            ("Must have", rule.limit),
            ("What to change", rule.help),
            ("Source", rule.source),
            ("Operators", scope),
        ]
        parts += [f"### {rule.id}", _table(("", ""), rows)]
    return "\n\n".join(parts) + "\n"


def tosa_page() -> str:
    """Return the operations of TOSA that an NPU has a form of."""
    from mizzen.ops import DEFINITIONS
    from mizzen.targets.ethos_u.generator.lower import kinds_of
    from mizzen.targets.ethos_u.machine.commands import ALL

    having = {arch: kinds_of(arch) for arch in ALL}
    kinds = [
        (f"`{kind}`", ", ".join(arch.value for arch in ALL if kind in having[arch]) or "-")
        for kind in sorted(DEFINITIONS)
        if kind not in ("CONST", "CONST_SHAPE", "CUSTOM")
    ]
    parts = [
        "# TOSA operations",
        "PyTorch programs, ONNX networks and TFLite networks become these operations, and `.tosa` "
        "files contain them. Mizzen's rules for Ethos-U support an operation on the NPUs in its "
        "row. A rule may still refuse it for its types or its shape: `mizzen check` shows which "
        "and why.",
        _table(("Operation", "NPU"), kinds),
    ]
    return "\n\n".join(parts) + "\n"


def ethos_n_page() -> str:
    """Return the Ethos-N78 variants, and the rules of each operation in the order of the tests."""
    from mizzen.targets.ethos_n.config import VARIANTS
    from mizzen.targets.ethos_n.legal import OPERATIONS

    variants = [
        (f"`{row.name}`", f"`{row.arm_name}`", row.engines, row.igs, row.ogs, row.sram_kib)
        for row in VARIANTS.values()
    ]
    parts = [
        "# Ethos-N operations",
        "The operations of Arm's Ethos-N Support Library, and the rules that make them Supported. "
        "The first rule that is broken decides; its message is the library's, with N for a number. "
        "[Ethos-N: levels and releases](../explanation/ethos-n.md) explains both.",
        "## Variants",
        "Engines, input and output generators of each, SRAM in KiB.",
        _table(("Name", "Arm's name", "Engines", "IGs", "OGs", "SRAM"), variants),
    ]
    for kind, entry in OPERATIONS.items():
        parts += [f"## {kind.__name__}", _doc(kind)]
        if len(entry.profiles) == 1:
            parts.append(f"Of release {entry.profiles[0].value} only.")
        parts.append(_ethos_n_rules(kind))
    return "\n\n".join(parts) + "\n"


def _ethos_n_rules(kind: type[EthosNOperation]) -> str:
    """Return a table of an operation's rules; one of a single release says so."""
    from mizzen.targets.ethos_n.config import Profile
    from mizzen.targets.ethos_n.legal import OPERATIONS
    from mizzen.targets.rules import Level, rules_of

    rows = [
        (
            f"`{rule.id}`",
            rule.limit,
            "a remark" if rule.level is Level.SUPPORTED else rule.level.value,
            rule.message.replace("%d", "N") or "-",
            rule.help,
            "all" if len(rule.on) == len(Profile) else rule.on[0].value,
        )
        for rule in rules_of(OPERATIONS[kind].table)
    ]
    return _table(("Rule", "Must have", "Otherwise", "Message", "What to change", "Release"), rows)


def ethos_n_composites_page() -> str:
    """Return the pattern table of Ethos-N, in the order in which patterns are tried."""
    from mizzen.targets.ethos_n.patterns import COMPUTE_INTENSIVE, TABLE
    from mizzen.targets.ethos_n.patterns.covering import PREFIX, SPLIT

    rows = [
        (
            f"`{row.name.removeprefix(PREFIX)}`",
            "the same" if row.becomes == row.name else f"`{row.becomes.removeprefix(PREFIX)}`",
            "yes" if row.becomes in COMPUTE_INTENSIVE else "no",
        )
        for row in TABLE
    ]
    several = (f"`{SPLIT.removeprefix(PREFIX)}`", "the same", "no")
    parts = [
        "# Ethos-N composites",
        "A composite is a part of a graph of TOSA operations that becomes one operation of the "
        "Support Library, or a few. Rows are tried in this order. A row is taken if its pattern "
        "matches and the library supports the result. "
        "[What becomes of a network](../explanation/ethos-n-composites.md) explains how. "
        "A split needs no pattern: it is all SLICEs of a tensor along an axis.",
        _table(("Composite", "Becomes", "Compute-intensive"), [*rows, several]),
        "## Patterns",
        "Patterns are written from the last operation inwards. `once` has no other reader, `maybe` "
        "is optional, `chain` is any number in a row, `...` is anything.",
    ]
    parts += [f"```text\n{row.pattern}\n```" for row in TABLE]
    return "\n\n".join(parts) + "\n"


def ethos_n_commands_page() -> str:
    """Return the commands of stream 3.1, and what the sources leave open of what they do."""
    from mizzen.targets.ethos_n.commands import INSTRUCTION_SET as STREAM
    from mizzen.targets.ethos_n.sim.inferred import INFERRED

    rows = [
        (f"`{row.code}`", row.what, "not known" if row.bound is None else row.bound)
        for row in INFERRED
    ]
    parts = [
        listing.markdown(STREAM),
        "## What the sources leave open\n",
        "[Another page](../explanation/ethos-n-numbers.md) explains these assumptions, and by how "
        "much an element may differ on a device.\n",
        _table(("Note", "Taken as", "Bound"), rows),
    ]
    return "\n".join(parts) + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def c_runtime_page() -> str:
    """Return the kernels of the C runtime, and the operators that they execute."""
    from mizzen.package.c.kernel_rows import KERNELS, sources_of
    from mizzen.package.c.lowering import RULES

    kernels = [
        (f"`{row.name}`", row.doc, ", ".join(f"`{name}`" for name in sources_of([row.name])))
        for row in KERNELS.values()
    ]
    families: dict[str, list[str]] = {}
    for operator in sorted(RULES):
        family, _, name = operator.partition("::")
        families.setdefault(family, []).append(f"`{name}`")
    parts = [
        "# Kernels of the C runtime",
        "These kernels execute the operators that the NPU does not take. A project has only the "
        "sources of the kernels that its network calls.",
        _table(("Kernel", "Computes", "Sources"), kernels),
        "## Operators",
        "Operators of frameworks become calls of kernels when a project is made. An operator that "
        "is not here is an error with its name (E464). One with types, shapes or options that no "
        "kernel takes is an error that lists the possible ones (E465). float64 is not supported.",
        _table(("Of", "Operators"), [(_FAMILIES[name], ", ".join(operators))
                                     for name, operators in families.items()]),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """Return every public name with its signature, fields, methods and docstrings."""
    return _module_page("Python", mizzen)


def pytorch_page() -> str:
    """Return the same of the interface for PyTorch."""
    return _module_page("PyTorch", import_module("mizzen.torch"))


def _module_page(title: str, module: ModuleType) -> str:
    parts = [f"# {title}", inspect.cleandoc(module.__doc__ or "")]
    for name in sorted(module.__all__, key=str.lower):
        value: object = getattr(module, name)
        if inspect.isclass(value):
            parts += class_parts(name, value)
        elif callable(value):
            parts += [f"## {name}", _signature(f"{module.__name__}.{name}", value), _doc(value)]
    return "\n\n".join(part for part in parts if part) + "\n"


def codes_page() -> str:
    """Return every code of an error or warning with what it says, from the sources."""
    parts = [
        "# Errors and warnings",
        "Every message begins with its code: E for errors, W for warnings. The variable parts of a "
        "message are in italics here, or "
        "…. Warnings end nothing. The exit status of an error is in the "
        "[command line](command-line.md)'s help.",
    ]
    found = _Codes()
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = path.read_text()
        if CODE.search(source):
            found.visit(ast.parse(source))
    for code in sorted(found.places):
        rows = found.messages.get(code) or [found.places[code]]
        parts += [f"## {code}", "\n".join(f"- {row}" for row in dict.fromkeys(rows))]
    return "\n\n".join(parts) + "\n"


CODE = re.compile(r"[EW]\d{3}")
FEW_WORDS = 2
"""Texts that say no more are put together from others; the place that names the code says it."""


class _Codes(ast.NodeVisitor):
    """Collects codes from sources: what they say, and what the place says that names them."""

    def __init__(self) -> None:
        self.messages: dict[str, list[str]] = {}
        self.places: dict[str, str] = {}
        self._docstring = ""

    def visit_Module(self, node: ast.Module) -> None:
        self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node)

    def _inside(self, node: ast.Module | ast.FunctionDef | ast.ClassDef) -> None:
        outer = self._docstring
        text = (ast.get_docstring(node) or "").partition("\n\n")[0]
        self._docstring = " ".join(text.split()) or outer
        self.generic_visit(node)
        self._docstring = outer

    def visit_Call(self, node: ast.Call) -> None:
        match node.args:
            case [ast.Constant(value=str(code)), message, *_] if CODE.fullmatch(code):
                text = _template(message)
                help = "".join(_template(row.value) for row in node.keywords if row.arg == "help")
                if len(re.findall(r"[A-Za-z]{2,}", text)) > FEW_WORDS:
                    self.messages.setdefault(code, []).append(_row(text, help))
            case _:
                pass
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and CODE.fullmatch(node.value):
            self.places.setdefault(node.value, self._docstring)


def _row(text: str, help: str) -> str:
    written = f"{text}; *help:* {help}" if help else text
    return written.replace("<", "&lt;").replace("[", "\\[")


def _template(node: ast.expr) -> str:
    """Return a text of the source, with … for what is filled in; nothing for another expression."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(_template(part) or "…" for part in node.values)
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"*{name.strip('_').replace('_', ' ')}*"
        case ast.IfExp():
            return _template(node.body)
        case _:
            return ""


def class_parts(name: str, value: type[object]) -> Iterator[str]:
    """Return the parts of a class: its docstring, its fields, its public methods and properties."""
    yield f"## {name}"
    yield _doc(value)
    if is_dataclass(value):
        rows = [(f"`{field.name}`", f"`{field.type}`") for field in fields(value)]
        yield _table(("Field", "Type"), rows).replace(" | None", " \\| None")
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
    """Return the signature of a function, a line for each parameter where one line is too long."""
    if not callable(value):
        return ""
    signature = inspect.signature(value)
    text = _unquoted(f"{name}{signature}")
    if len(text) > LINE_WIDTH:
        parameters = [str(parameter) for parameter in signature.parameters.values()]
        keyword_only = [p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()]
        if True in keyword_only and "*" not in "".join(parameters):
            parameters.insert(keyword_only.index(True), "*")
        lines = "".join(f"    {parameter},\n" for parameter in parameters)
        text = _unquoted(f"{name}(\n{lines}) -> {signature.return_annotation!r}")
    return f"```python\n{text}\n```"


def _unquoted(signature: str) -> str:
    """Write annotations, which are text here, as they are written in the source."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)


def _doc(value: object) -> str:
    """Return a docstring; paragraphs of aligned columns keep their lines."""
    paragraphs = (inspect.getdoc(value) or "").split("\n\n")
    return "\n\n".join(
        f"```text\n{text}\n```" if COLUMNS.search(text) else text for text in paragraphs
    )
