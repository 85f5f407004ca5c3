"""Write an HTML page about an artifact: layers, time, memory, commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.cli.advice import tried_advice
from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.clock import add_clock_option, timed_on
from mizzen.cli.configuration import (
    add_configuration_options,
    board_of,
    keywords,
    require_on_board,
    show_configuration,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.fit import Needs, needs_facts, needs_of_network, needs_text
from mizzen.cli.layout import count, fields, inference
from mizzen.cli.placement import artifact_text, conversion_rows, energy_rows
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.analysis.findings import Findings
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.backend import ResolvedTarget
    from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

SUMMARY = "one HTML page: layers, time, memory, commands; files for other tools"
MODELS = frozenset({".onnx", ".pt2", ".tosa"})
"""Ends of names of what is always a model."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        help="a compiled .tflite, .zip or .pte, or Vela's raw .npz; or a model, a .tflite, .onnx, "
        ".pt2 or .tosa file, which is compiled first",
    )
    add_data_option(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the page (default: ARTIFACT's name with .html)"
    )
    parser.add_argument(
        "--signature", metavar="NAME", help="report on a signature instead of the main subgraph"
    )
    parser.add_argument(
        "--evaluation",
        metavar="FILE",
        help="output of `mizzen evaluate --json`; adds a section on accuracy",
    )
    files = parser.add_argument_group("files for other tools")
    files.add_argument(
        "--trace", metavar="FILE", help="JSON for Perfetto and Chrome: units over time"
    )
    files.add_argument(
        "--csv", metavar="DIR", help="a folder for Vela's summary and table of layers, as CSV"
    )
    files.add_argument(
        "--model-explorer",
        metavar="FILE",
        help="JSON for Model Explorer: cycles on the model's nodes",
    )
    add_clock_option(parser)
    add_configuration_options(parser)


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Find out what is known of the artifact, and write it.

    A stream that cannot be read is told on the page, and makes the exit status 2.
    """
    from mizzen.analysis.files import findings_document
    from mizzen.analysis.findings import findings_of
    from mizzen.analysis.page import report_page
    from mizzen.files import write_files
    from mizzen.report.page import render

    evaluation = _evaluation(options)
    artifact, chosen = _artifact(options, console)
    system = _measured(options, artifact)
    figures = None if chosen is not None else timed_on(artifact, board_of(options), options.clock)
    if options.signature is not None:
        artifact = artifact.signature(options.signature)
    with console.progress(f"looking into {options.artifact}"):
        findings = findings_of(artifact, evaluation, figures, system)
    if chosen is not None:
        made, asked = (artifact, findings.layers), keywords(options)
        advice = tried_advice(options.artifact, made, asked, chosen, console)
        findings = replace(findings, advice=advice)
    needs = _needs(options, artifact, findings)
    title, facts = needs_facts(needs)
    facts += [("does not fit", finding.message) for finding in needs.findings]
    findings = replace(findings, asked=(title, tuple(facts)) if facts else None)
    with console.progress(f"writing the page of {options.artifact}"):
        page = render(report_page(findings)).encode()
    path = Path(options.output or Path(options.artifact).with_suffix(".html").name)
    operations = sum(work.starts for stream in findings.streams for work in stream.work)
    files = [(path, f"the page: {count(operations, 'operation')} on the NPU", page)]
    files += _files(options, findings)
    write_files({path: data for path, _, data in files}, Path(options.csv) if options.csv else None)
    lines = [(str(path), what) for path, what, _ in files]
    document = {"files": [name for name, _ in lines], **needs.as_dict()}
    document |= findings_document(findings)
    head = _head(findings, console)
    fit = f"{said}\n\n" if (said := needs_text(needs, console)) else ""
    text = f"{head}{fit}Written\n{fields(lines, width=console.width)}"
    problem, *others = (*findings.problems, None)
    doubts = () if system is None else system.warnings
    diagnostics = [*artifact.doubts, *doubts, *(other for other in others if other)]
    return Answer(document, text, needs.findings, diagnostics, problem)


def _measured(options: argparse.Namespace, artifact: Artifact) -> EthosUConfiguration | None:
    """Return the system of a board whose memories were measured; None for the artifact's own.

    The artifact's report then says so too, and is timed in it.
    """
    from mizzen.analysis.cost.measured import in_measured
    from mizzen.analysis.cost.reporting import configuration_of

    board = board_of(options)
    own = configuration_of(artifact, None)
    if board is None or board.measured is None or own is None:
        return None
    system = in_measured(own, board)
    if artifact.report is not None:
        artifact.report = replace(artifact.report, configuration=system.as_dict())
    return system


def _head(findings: Findings, console: Console) -> str:
    """Say how long an inference takes, before what was written; empty where nothing says."""
    if findings.cost is None:
        return ""
    time = findings.cost.time
    energy = energy_rows(findings.cost.energy)
    facts = [("estimate", inference(time)), *conversion_rows(time), *energy]
    return f"{fields(facts, width=console.width)}\n\n"


def _needs(options: argparse.Namespace, artifact: Artifact, findings: Findings) -> Needs:
    """Count what the artifact needs of the board that is asked about."""
    board = board_of(options)
    if findings.memory is None or board is None:
        return Needs()
    return needs_of_network(artifact, board)


def _files(options: argparse.Namespace, findings: Findings) -> Iterator[tuple[Path, str, bytes]]:
    """Return the files that were asked for: where they go, what they are, what is in them."""
    from mizzen.analysis.files import inference_trace, node_data, vela_tables

    _require_known(options, findings)
    if findings.cost is not None and options.trace:
        trace = inference_trace(findings.cost, findings.memory)
        data = json.dumps(trace).encode()
        yield Path(options.trace), "units over time, for Perfetto", data
    if options.csv:
        for name, table in vela_tables(findings).items():
            yield Path(options.csv, name), "a table in Vela's columns", table
    if options.model_explorer:
        data = json.dumps(node_data(findings), indent=1).encode()
        yield Path(options.model_explorer), "cycles, for Model Explorer", data


def _require_known(options: argparse.Namespace, findings: Findings) -> None:
    """Refuse files of what is not known: E586 without costs, E588 without the model's operators."""
    asked = [name for name in ("trace", "csv", "model_explorer") if getattr(options, name)]
    if asked and findings.cost is None:
        said = [problem.message for problem in findings.problems]
        raise fail(
            "E586",
            f"{findings.name} must have operations that can be timed for "
            f"--{asked[0].replace('_', '-')}: {said[0] if said else 'it has none'}",
            help="leave the option out, or compile the model again",
        )
    if options.model_explorer and findings.compilation is None:
        raise fail(
            "E588",
            f"the report of {findings.name} must be beside it for --model-explorer, as it names "
            "the model's operators, and is not",
            help="compile the model again, or give the model itself",
        )


def _evaluation(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return the data of an evaluation. E587 for a file that is not of one."""
    if options.evaluation is None:
        return None
    from mizzen.documents import Form, Syntax, content_of, parse  # a verb's start waits for it
    from mizzen.report.file_formats import EvaluationKeys

    form = Form(
        "what mizzen evaluate --json writes",
        Syntax.JSON,
        "E587",
        "E587",
        largest_bytes=16 << 20,
        help="mizzen evaluate ARTIFACT --data DATA --json > evaluation.json",
        wording="{name} must be what mizzen evaluate --json writes: {place} must {must}",
    )
    path = Path(options.evaluation)
    return parse(EvaluationKeys, content_of(path, form), str(path), form).as_dict()


def _artifact(
    options: argparse.Namespace, console: Console
) -> tuple[Artifact, ResolvedTarget | None]:
    """Return the artifact that is asked about, compiled first where it is a model, and for what."""
    import mizzen

    path = Path(options.artifact)
    if path.suffix not in MODELS:
        artifact = load_artifact(options, path)
        if artifact.accelerator is not None or artifact.report is not None:
            _require_nothing_asked(options)
            require_on_board(options, artifact)
            console.note(artifact_text(artifact, width=console.width))
            return artifact, None
    asked = keywords(options)
    chosen = show_configuration(asked, options.artifact, console)
    with console.progress(f"compiling {options.artifact}"):
        return mizzen.compile(options.artifact, **asked), chosen


def _require_nothing_asked(options: argparse.Namespace) -> None:
    """Refuse options that say how to compile what is compiled already: E585."""
    asked = argparse.Namespace(**vars(options))
    asked.accelerator_config = asked.board = asked.clock = None
    if keywords(asked) != keywords(_nothing_asked()):
        raise fail(
            "E585",
            f"{options.artifact} must be a model for options that say how to compile, and is "
            "compiled already",
            help="give the model instead, or leave out all but --accelerator-config",
        )


def _nothing_asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_configuration_options(parser)
    return parser.parse_args([])
