"""List the program of an element of a mesh: memory and instructions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.console import Answer, Console
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.mesh.program import MeshProgram

SUMMARY = "an element's memory and instructions"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("program", metavar="PROGRAM", help="a file that mizzen mesh map wrote")
    parser.add_argument(
        "--element",
        metavar="N",
        type=int,
        help="the element's index (default: the first with a program)",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """List the element's program."""
    from mizzen.mesh.program import listing, read_program

    program = read_program(Path(options.program))
    element = require_element(program, options.element)
    text = listing(program, element)
    document = {"program": str(options.program), "element": element, "listing": text}
    return Answer(document, text)


def require_element(program: MeshProgram, element: int | None) -> int:
    """Return an element that has a program, the first by default. E560 for one without."""
    known = [each.element for each in program.elements]
    if element is None:
        return known[0]
    if element not in known:
        raise fail(
            "E560",
            f"--element must be one of {len(known):,} with a program, and {element} has none",
            help=f"the first are {', '.join(map(str, known[:5]))}",
        )
    return element
