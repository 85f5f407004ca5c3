"""Write the reference's page of conformance: every network, Vela's cores and Mizzen.

`make conformance` runs this. It takes minutes, so the page is part of the repository and not made
when the site is built; a test runs a sample of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.suite import DEFAULT_INPUTS, run
from mizzen.conformance.table import markdown
from mizzen.conformance.verdict import Row
from mizzen.targets.ethos_u.machine.system_config import resolve

PAGE = Path(__file__).with_name("reference") / "conformance.md"
TABLES = {
    Compiler.REGOR: ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"),
    Compiler.MIZZEN: ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"),
    Compiler.OWN: ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"),
    Compiler.LEGACY: ("ethos-u55-128",),
}
"""The accelerators that each compiler is judged on."""

INTRODUCTION = """\
# Conformance

These tables show the verdicts of `mizzen conformance` on ethos-u-vela 5.2.0 and on Mizzen, with
{inputs} random inputs for each of {networks} networks of one operator. [Judge a
compiler](../how-to/conformance.md) explains the method and the words of the tables. An asterisk
marks a [known difference of Vela's code](../how-to/conformance.md#where-velas-code-differs).
"""
SECTION = """
## {name}

`{command}`

{what}{tables}
"""
WHAT = {
    Compiler.MIZZEN: """\
All of `mizzen compile` with its defaults: Mizzen's own rules, the proof, and the CPU for operators
that no rule takes.""",
    Compiler.OWN: """\
`--generator own` without a proof: every operator that Mizzen's rules take is on the NPU, right or
wrong.""",
}
"""What there is to know of a section before its table."""


def page() -> str:
    """Return the whole page; this runs the suite."""
    found = cases()
    parts = [INTRODUCTION.format(inputs=DEFAULT_INPUTS, networks=len(found))]
    for compiler, accelerators in TABLES.items():
        rows = list(run(found, compiler, [resolve(name) for name in accelerators]))
        parts.append(
            SECTION.format(
                name=compiler.label,
                command=command(compiler, accelerators),
                what=what(compiler, rows, accelerators),
                tables=markdown(rows, accelerators, level=3),
            )
        )
    return "".join(parts)


def what(compiler: Compiler, rows: Sequence[Row], accelerators: Sequence[str]) -> str:
    """Return what a section says before its table: what it is, and how many of each verdict."""
    if compiler not in WHAT:
        return ""
    lines = [WHAT[compiler], ""]
    for name in accelerators:
        found = Counter(total(row) for row in rows if row.accelerator == name)
        counts = ", ".join(f"{count} {said}" for said, count in found.most_common())
        lines.append(f"- {name}: {counts}")
    return "\n".join([*lines, "", ""])


def total(row: Row) -> str:
    """Return the words under which a row is counted."""
    return row.verdict.value


def command(compiler: Compiler, accelerators: Sequence[str]) -> str:
    """Return the command that makes a section."""
    return (
        f"mizzen conformance --compiler {compiler.value} --accelerator-config "
        f"{','.join(accelerators)} --format markdown"
    )


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
