"""Write a page about programs of a mesh: loads, layers, memory, time."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mizzen.cli.configuration import positive_number
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, size
from mizzen.cli.mesh.map import figure_rows, figures
from mizzen.cli.mesh.programs import sound_program

SUMMARY = "a page with loads, layers, memory and time"
LARGEST_SIMULATED = 1_024
"""Elements up to which events are simulated unless asked for: some seconds."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("program", metavar="PROGRAM", help="a file that mizzen mesh map wrote")
    parser.add_argument(
        "--images",
        metavar="N",
        type=positive_number,
        help=f"images to simulate (default: 6, and none on more than {LARGEST_SIMULATED:,} "
        "elements)",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="timeline of the elements as JSON for Perfetto; needs --images",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the page (default: PROGRAM's name with .html)"
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Estimate, simulate, and write the page."""
    from mizzen.files import write_files
    from mizzen.mesh.report import mesh_page, trace
    from mizzen.mesh.simulation import estimate, simulate
    from mizzen.report.page import render

    program = sound_program(Path(options.program))
    estimated = estimate(program)
    images = options.images or (
        6 if options.trace or len(program.elements) <= LARGEST_SIMULATED else 0
    )
    simulated = None
    if images:
        with console.progress(f"simulating {images} images"):
            simulated = simulate(program, images, keeps_activities=True)
    path = Path(options.output or Path(options.program).with_suffix(".html").name)
    content = render(mesh_page(program, estimated, simulated))
    files = {path: content.encode()}
    facts = [(str(path), size(len(content.encode()))), *figure_rows(program, estimated)]
    document = {"page": str(path), "bytes": len(content.encode()), **figures(program, estimated)}
    if simulated is not None:
        document["simulated_images_per_s"] = simulated.images_per_s
        document["simulated_latency_s"] = simulated.latency_s
        facts.append(("by events", f"{simulated.images_per_s:,.0f} images a second"))
    if options.trace and simulated is not None:
        files[Path(options.trace)] = json.dumps(trace(program, simulated)).encode()
        facts.append((options.trace, "what elements do, for Perfetto"))
    write_files(files)
    return Answer(document, fields(facts, width=console.width))
