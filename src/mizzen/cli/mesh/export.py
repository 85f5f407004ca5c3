"""Write C for an element of a mesh: memory, constants, instructions."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from mizzen.cli.configuration import add_output_option, output_folder, positive_number
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, size
from mizzen.cli.mesh.inspect import require_element
from mizzen.cli.mesh.programs import sound_program
from mizzen.cli.mesh.run import random_inputs

SUMMARY = "C for an element, with a test that replays its messages"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("program", metavar="PROGRAM", help="a file that mizzen mesh map wrote")
    parser.add_argument(
        "--element",
        metavar="N",
        type=int,
        help="the element's index (default: the first with a program)",
    )
    parser.add_argument(
        "--images",
        metavar="N",
        type=positive_number,
        default=2,
        help="random images whose messages the project replays (default: %(default)s)",
    )
    add_output_option(parser, "the project")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Execute the network once to record the element's messages, and write its project."""
    from mizzen.files import write_files
    from mizzen.mesh.export import export_element, record

    program = sound_program(Path(options.program))
    element = require_element(program, options.element)
    with console.progress(f"recording the messages of {options.images} images"):
        inputs = random_inputs(program.network, options.images)
        files = export_element(program, element, record(program, inputs, [element]))
    folder = output_folder(options)
    write_files({folder / name: content for name, content in files.items()}, folder)
    name = program.machine.element_name(element)
    document = {"element": element, "name": name, "folder": str(folder), "files": sorted(files)}
    facts = [
        (str(folder), f"{len(files)} files, {size(sum(map(len, files.values())))}"),
        ("element", f"{element}, {name}"),
        ("build", f"make -C {shlex.quote(str(folder))}"),
    ]
    return Answer(document, fields(facts, width=console.width))
