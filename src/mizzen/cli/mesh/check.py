"""Check programs of a mesh by themselves, without what mapped them."""

from __future__ import annotations

import argparse
from pathlib import Path

from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields
from mizzen.cli.mesh.programs import diagnostic
from mizzen.diagnostics import Diagnostic

SUMMARY = "do programs keep to their machine and network?"
SHOWN_FINDINGS = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("program", metavar="PROGRAM", help="a file that mizzen mesh map wrote")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Check the programs and return what they break."""
    from mizzen.mesh.program import check, read_program

    program = read_program(Path(options.program))
    with console.progress(f"checking {options.program}"):
        findings = check(program)
    document = {
        "program": str(options.program),
        "elements": len(program.elements),
        "messages": len(program.routes),
        "findings": [
            {
                "rule": finding.rule.value,
                "place": finding.place,
                "must": finding.must,
                "came": finding.came,
            }
            for finding in findings
        ],
    }
    said = f"{count(len(program.elements), 'element')}, {count(len(program.routes), 'message')}"
    text = fields(
        [(str(options.program), said), ("findings", f"{len(findings):,}" if findings else "none")],
        width=console.width,
    )
    failures = [diagnostic(finding) for finding in findings[:SHOWN_FINDINGS]]
    if len(findings) > SHOWN_FINDINGS:
        failures.append(
            Diagnostic(
                "E508",
                f"all rules must hold, and {len(findings) - SHOWN_FINDINGS:,} more do not",
                help="--json has all of them",
            )
        )
    return Answer(document, text, failures=failures)
