"""Compile a network for an NPU: quantised TFLite, ONNX or PyTorch, or TOSA.

The artifact is executed on a few inputs and compared with the integer
reference before it is written. --calibrate quantises a floating-point network
first.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.clock import add_clock_option
from mizzen.cli.configuration import (
    add_budget_options,
    add_configuration_options,
    add_output_option,
    keywords,
    output_folder,
    read_file,
    show_configuration,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.fit import Needs, needs_of_network, needs_text
from mizzen.cli.layout import count, fields, size
from mizzen.cli.parts import INSTRUMENT, NO_PARTS, write_parts
from mizzen.cli.placement import cost_of, cpu_text, summary_rows
from mizzen.diagnostics import Diagnostic, Severity
from mizzen.escaping import one_line

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.backend import ResolvedTarget
    from mizzen.report import CompileReport
    from mizzen.report.cost import CostReport
    from mizzen.report.quantization import QuantizationReport

SUMMARY = "TFLite, ONNX, .pt2 or TOSA -> artifact to flash; memory and cycles"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a quantised .tflite, .onnx or .pt2 file, or a .tosa file; with --instrument also a "
        "compiled .tflite",
    )
    group = parser.add_argument_group("for a floating-point MODEL")
    group.add_argument(
        "--calibrate",
        metavar="[NAME=]PATH",
        nargs="+",
        help="quantise it with this data first; `mizzen quantize` does the same with options, and "
        "reports the accuracy",
    )
    parser.add_argument("--instrument", action="store_true", help=INSTRUMENT)
    add_clock_option(parser)
    add_configuration_options(parser)
    add_budget_options(parser)
    add_output_option(parser, "the artifact, its report and, for Ethos-U, Vela's summary")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Compile, write the artifact and its report, and say what became of the network."""
    if options.instrument and _is_compiled(options.model):
        return _cut(options, console)
    if not options.calibrate:
        return _compiled(options, options.model, (), console)
    from mizzen.files import temporary_folder

    with temporary_folder() as folder:
        model = folder / Path(options.model).name
        said = _quantise(options, model, console)
        options.shape = []  # the quantised network has its shapes
        return _compiled(options, str(model), said, console)


def _quantise(options: argparse.Namespace, place: Path, console: Console) -> Sequence[Diagnostic]:
    """Write the quantised network to a temporary place, and return what is to be said of it."""
    from mizzen.calibration.quantizing import Words, begun
    from mizzen.calibration.scheme import Scheme
    from mizzen.compiler.levels import CODE
    from mizzen.compiler.source import read_shapes
    from mizzen.files import write_file

    with console.progress(f"calibrating {options.model}"):
        work = begun(
            options.model, Words(tuple(options.calibrate)), Scheme(), read_shapes(options.shape)
        )
        write_file(place, work.made.data)
        # What keeps few levels is said of what is compiled.
        said = [each for each in work.diagnostics() if each.code != CODE]
        return (quantised_here(work.report()), *said)


def quantised_here(report: QuantizationReport) -> Diagnostic:
    """Say that a network was quantised first, and with what."""
    return Diagnostic(
        "N199",
        f"{report.model} was quantised first, with {count(report.samples, 'sample')} of "
        f"{report.data}: {report.activations} activations, ranges by {report.method}",
        Severity.NOTE,
        help="`mizzen quantize` writes the quantised network, and reports the accuracy",
    )


def _compiled(
    options: argparse.Namespace, model: str, said: Sequence[Diagnostic], console: Console
) -> Answer:
    import mizzen
    from mizzen.analysis.checking.budget import again
    from mizzen.analysis.checking.networks import failures_of

    asked = keywords(options)
    chosen = show_configuration(asked, model, console)
    with console.progress(f"compiling {options.model}"):
        artifact = mizzen.compile(model, **asked)
    assert artifact.report is not None, "a compilation always reports"
    report = replace(artifact.report, diagnostics=(*said, *artifact.report.diagnostics))
    artifact.report = report
    files, replaced = write(artifact, chosen, output_folder(options))
    with console.progress(f"checking {options.model}, compiling it again if it is too large"):
        failures = tuple(
            failures_of(
                report,
                artifact,
                max_cpu_ops=options.max_cpu_ops,
                sram_budget_bytes=options.sram_budget,
                compile_again=again(model, **asked),
            )
        )
    parts = NO_PARTS
    if options.instrument:
        parts = write_parts(artifact, output_folder(options), console)
    cost = cost_of(artifact)
    needs = Needs()
    if chosen.board is not None:
        needs = needs_of_network(artifact, chosen.board, again(model, **asked))
    return Answer(
        {
            **{what: str(file) for what, file in {**files, **parts.files}.items()},
            **document(report, cost),
            **needs.as_dict(),
            **parts.document,
        },
        _text(report, [*files.values(), *parts.files.values()], needs, parts.text, console),
        failures=(*failures, *needs.findings),
        diagnostics=(*report.diagnostics, *replaced, *parts.diagnostics),
    )


def _is_compiled(model: str) -> bool:
    from mizzen.analysis.instrumenting import holds_compiled

    return holds_compiled(read_file(Path(model)))


def _cut(options: argparse.Namespace, console: Console) -> Answer:
    """Cut an artifact that is compiled already."""
    from mizzen.artifact.loading import load

    artifact = load(options.model, options.accelerator_config)
    parts = write_parts(artifact, output_folder(options), console)
    written = written_text(parts.files.values(), width=console.width)
    return Answer(
        {**{what: str(file) for what, file in parts.files.items()}, **parts.document},
        f"{one_line(options.model)}\n{parts.text}\n\n{written}",
        diagnostics=(*artifact.doubts, *parts.diagnostics),
    )


def write(
    artifact: Artifact, chosen: ResolvedTarget, folder: Path
) -> tuple[dict[str, Path], tuple[Diagnostic, ...]]:
    """Write an artifact, its report and summary; return the files, and warnings about them."""
    from mizzen.files import write_files
    from mizzen.report import sidecar_path

    report = artifact.report
    assert report is not None, "a compilation always reports"
    path = folder / artifact.name
    replaced = tuple(_replaced(path, report))
    contents = artifact.files(path)
    files = {"artifact": path, "report": sidecar_path(path)}
    summary = chosen.backend.summary_file(report, chosen.configuration)
    if summary is not None:
        files["summary"] = folder / summary[0]
        contents[files["summary"]] = summary[1]
    write_files(contents, folder)
    return files, replaced


def written_text(files: Iterable[Path], *, width: int) -> str:
    """List files that were written, with their sizes."""
    facts = [(str(path), size(path.stat().st_size)) for path in files]
    return f"Written\n{fields(facts, width=width)}"


def _replaced(path: Path, report: CompileReport) -> Iterator[Diagnostic]:
    """Warn of an artifact for another accelerator in the same place."""
    from mizzen.report import read_sidecar

    if not path.is_file():
        return
    before = read_sidecar(path, path.read_bytes())
    one, other = (None if each is None else each.configuration["accelerator"]
                  for each in (before, report))  # fmt: skip
    if one not in (None, other):
        yield Diagnostic(
            "W310",
            f"{path} held an artifact for {one}, and holds one for {other} instead",
            Severity.WARNING,
            help="give each accelerator a folder of its own with --output-dir",
        )


def document(report: CompileReport, cost: CostReport | None = None) -> dict[str, object]:
    """Return a report for programs; origins stay in the file beside the artifact.

    Of the timing model's estimate it has the sums.
    """
    from mizzen.analysis.files import sums
    from mizzen.report.compilation import as_dict

    told = {key: value for key, value in as_dict(report).items() if key != "origins"}
    told.setdefault("energy", None)
    return told if cost is None else {**told, "cost": sums(cost)}


def _text(
    report: CompileReport, written: list[Path], needs: Needs, cut: str, console: Console
) -> str:
    parts = [report_text(report, console)]
    if text := needs_text(needs, console):
        parts.append(text)
    if cut:
        parts.append(cut)
    parts.append(written_text(written, width=console.width))
    return "\n\n".join(parts)


def report_text(report: CompileReport, console: Console) -> str:
    """Return what the verb prints of a compilation: its summary, and what is on the CPU."""
    summary = fields(summary_rows(report), width=console.width)
    text = f"{one_line(report.model)}\n{summary}"
    if not report.on_cpu:
        return text
    return f"{text}\n\n{cpu_text(report.on_cpu, width=console.width)}"
