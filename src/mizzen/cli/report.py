"""Write a page about an artifact: layers, time, memory, configuration, commands."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import (
    add_configuration_options,
    keywords,
    show_configuration,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields, size
from mizzen.cli.placement import artifact_text
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

SUMMARY = "one HTML page: layers, time, memory, commands; files for other tools"
MODELS = frozenset({".pt2", ".tosa"})
"""Ends of names of what is always a model."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        help="a compiled .tflite, .zip or .pte, or Vela's raw .npz; or a model, a .tflite, .pt2 or "
        ".tosa file, which is compiled first",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the page (default: ARTIFACT's name with .html)"
    )
    add_configuration_options(parser)


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Find out what is known of the artifact, and write it."""
    from mizzen.analysis.findings import findings_of
    from mizzen.analysis.page import report_page
    from mizzen.report.page import render

    artifact = _artifact(options, console)
    with console.progress(f"looking into {options.artifact}"):
        findings = findings_of(artifact)
        page = render(report_page(findings)).encode()
    path = Path(options.output or Path(options.artifact).with_suffix(".html").name)
    written(path, page)
    document = {"artifact": artifact.name, "page": str(path), "bytes": len(page)}
    operations = sum(row.starts for stream in findings.streams for row in stream.work)
    rows = [(str(path), f"{size(len(page))}, {count(operations, 'operation')}")]
    return Answer(document, f"Written\n{fields(rows, width=console.width)}")


def written(path: Path, data: bytes) -> None:
    """Write a file. E201 where that cannot be."""
    try:
        path.write_bytes(data)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise fail("E201", f"{path} must be a file that can be written: {reason}") from None


def _artifact(options: argparse.Namespace, console: Console) -> Artifact:
    """Return the artifact that is asked about, compiled first where it is a model."""
    import mizzen

    path = Path(options.artifact)
    if path.suffix not in MODELS:
        artifact = mizzen.load(path, options.accelerator_config)
        if artifact.accelerator is not None or artifact.report is not None:
            _require_nothing_asked(options)
            console.note(artifact_text(artifact, width=console.width))
            return artifact
    asked = keywords(options)
    show_configuration(asked, options.artifact, console)
    with console.progress(f"compiling {options.artifact}"):
        return mizzen.compile(options.artifact, **asked)


def _require_nothing_asked(options: argparse.Namespace) -> None:
    """Refuse options that say how to compile what is compiled already: E585."""
    asked = argparse.Namespace(**vars(options))
    asked.accelerator_config = None
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
