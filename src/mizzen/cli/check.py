"""Say where every operator of a network would run, why, and whether it fits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mizzen.cli.configuration import (
    add_budget_options,
    add_configuration_options,
    keywords,
    show_configuration,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields
from mizzen.cli.placement import cpu_text, operators_text, summary_rows

if TYPE_CHECKING:
    from mizzen.report import CompileReport

SUMMARY = "placement with reasons, costs and fixes; fit on the board"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model", metavar="MODEL", help="a quantised .tflite or .pt2 file, or a .tosa file"
    )
    add_configuration_options(parser)
    add_budget_options(parser, max_cpu_ops=0)


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Check the network, and say where each operator goes and what is not as allowed."""
    import mizzen
    from mizzen.cli.compile import document

    asked = keywords(options)
    show_configuration(asked, console)
    with console.progress(f"compiling {options.model}"):
        found = mizzen.check(
            options.model,
            max_cpu_ops=options.max_cpu_ops,
            sram_budget=options.sram_budget,
            **asked,
        )
    report = found.compilation
    allowed = {
        "max_cpu_ops": found.max_cpu_ops,
        "sram_budget_bytes": found.sram_budget_bytes,
    }
    return Answer(
        {**allowed, **document(report)},
        _text(report, console),
        failures=found.failures,
        diagnostics=report.diagnostics,
    )


def _text(report: CompileReport, console: Console) -> str:
    parts = [
        f"{report.model}\n{fields(summary_rows(report), width=console.width)}",
        operators_text(report, width=console.width),
    ]
    if report.on_cpu:
        parts.append(cpu_text(report.on_cpu, width=console.width))
    return "\n\n".join(parts)
