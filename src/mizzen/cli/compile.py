"""Compile a quantised TFLite network for an NPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import (
    add_budget_options,
    add_configuration_options,
    add_output_option,
    budgets,
    keywords,
    output_folder,
    show_configuration,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, size
from mizzen.cli.placement import cpu_text, over_budgets, summary_rows

if TYPE_CHECKING:
    from mizzen.report import CompileReport

SUMMARY = "quantised TFLite -> artifact; placement and memory"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("model", metavar="MODEL", help="a quantised .tflite file")
    add_configuration_options(parser)
    add_budget_options(parser)
    add_output_option(parser, "NAME_vela.tflite and its report NAME_vela.json")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Compile, write the artifact and its report, and say what became of the network."""
    import mizzen
    from mizzen.report.sidecar import sidecar_path

    asked = keywords(options)
    show_configuration(asked, console)
    with console.progress(f"compiling {options.model}"):
        artifact = mizzen.compile(options.model, **asked)
    report = artifact.report
    assert report is not None, "a compilation always reports"
    path = output_folder(options) / artifact.name
    artifact.save(path)
    written = [path, sidecar_path(path)]
    return Answer(
        {"artifact": str(path), "report": str(written[1]), **document(report)},
        _text(report, written, console),
        failures=over_budgets(report, **budgets(options)),
        diagnostics=report.diagnostics,
    )


def document(report: CompileReport) -> dict[str, object]:
    """Give a report for programs; origins stay in the file beside the artifact."""
    from mizzen.report.sidecar import as_dict

    return {key: value for key, value in as_dict(report).items() if key != "origins"}


def _text(report: CompileReport, written: list[Path], console: Console) -> str:
    parts = [f"{report.model}\n{fields(summary_rows(report), width=console.width)}"]
    if report.on_cpu:
        parts.append(cpu_text(report.on_cpu, width=console.width))
    files = [(str(path), size(path.stat().st_size)) for path in written]
    parts.append(f"Written\n{fields(files, width=console.width)}")
    return "\n\n".join(parts)
