"""Write the reference's page of conformance: every network, both cores of Vela.

`make conformance` runs this. It takes minutes, so the page is part of the repository and not made
when the site is built; a test runs a sample of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.suite import DEFAULT_INPUTS, run
from mizzen.conformance.table import markdown
from mizzen.targets.ethos_u.system_config import resolve

PAGE = Path(__file__).with_name("reference") / "conformance.md"
TABLES = {
    Compiler.REGOR: ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"),
    Compiler.LEGACY: ("ethos-u55-128",),
}
"""The accelerators that each compiler is judged on."""

INTRODUCTION = """\
# Conformance of Vela

What `mizzen conformance` says of ethos-u-vela 5.2.0, with {inputs} random inputs for each of
{networks} networks of one operator. [How the networks are judged](../how-to/conformance.md), and
what the words of the tables mean, is on a page of its own; an asterisk marks a
[documented exception](../explanation/exceptions.md).
"""
SECTION = """
## {name}

`{command}`

{tables}
"""


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
                tables=markdown(rows, accelerators, level=3),
            )
        )
    return "".join(parts)


def command(compiler: Compiler, accelerators: Sequence[str]) -> str:
    """Return the command that makes a section."""
    return (
        f"mizzen conformance --compiler {compiler.value} --accelerator-config "
        f"{','.join(accelerators)} --format markdown"
    )


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
