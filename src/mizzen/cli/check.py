"""Say where every operator of a network would run, why, and whether it fits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mizzen.cli.configuration import (
    add_budget_options,
    add_configuration_options,
    keywords,
    show_configuration,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields
from mizzen.cli.placement import cpu_text, operators_text, summary_rows
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.checking import StepCheck
    from mizzen.report import CompileReport

SUMMARY = "placement with reasons, costs and fixes; fit on the board; hazards of an artifact"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="a quantised .tflite or .pt2 file, or a .tosa file",
    )
    parser.add_argument(
        "--artifact",
        metavar="ARTIFACT",
        help="instead of a model: what some compiler made, a .tflite, .zip or .pte, or Vela's raw "
        ".npz; its command streams are read for damage and hazards, and nothing is executed",
    )
    add_configuration_options(parser)
    add_budget_options(parser, max_cpu_ops=0)


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Check the network, and say where each operator goes and what is not as allowed."""
    if (options.model is None) == (options.artifact is None):
        raise fail(
            "E200",
            "the command line is wrong: check takes either MODEL or --artifact ARTIFACT",
            help="mizzen check --help",
        )
    return _model(options, console) if options.artifact is None else _artifact(options, console)


def _model(options: argparse.Namespace, console: Console) -> Answer:
    import mizzen
    from mizzen.cli.compile import document

    asked = keywords(options)
    show_configuration(asked, options.model, console)
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


def _artifact(options: argparse.Namespace, console: Console) -> Answer:
    """Read the streams of an artifact. E206 if there are none."""
    import mizzen
    from mizzen.artifact.checking import check_streams

    artifact = mizzen.load(options.artifact, options.accelerator_config)
    with console.progress(f"checking {options.artifact}"):
        found = check_streams(artifact)
    if not found:
        raise fail(
            "E206",
            f"{options.artifact} must have an NPU operator for its stream to be checked, and has "
            "none",
            help="compile it first, or ask where its operators go: "
            f"mizzen check {options.artifact}",
        )
    return Answer(
        {
            "artifact": str(options.artifact),
            "accelerator": artifact.accelerator,
            "steps": [row.as_dict() for row in found],
        },
        _artifact_text(artifact, found, console),
        failures=[finding for row in found for finding in row.findings],
    )


def _artifact_text(artifact: Artifact, found: Sequence[StepCheck], console: Console) -> str:
    rows = [("accelerator", artifact.accelerator or "unknown")]
    for row in found:
        if row.report is None:
            text = "malformed"
        else:
            hazards = count(len(row.findings), "hazard")
            text = f"{count(row.report.operations, 'operation')}, {hazards}"
        rows.append((f"step {row.step}", text))
    return f"{artifact.name}\n{fields(rows, width=console.width)}"


def _text(report: CompileReport, console: Console) -> str:
    parts = [
        f"{report.model}\n{fields(summary_rows(report), width=console.width)}",
        operators_text(report, width=console.width),
    ]
    if report.on_cpu:
        parts.append(cpu_text(report.on_cpu, width=console.width))
    return "\n\n".join(parts)
