"""Compare what the NPU computes with what the model means, layer by layer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mizzen.cli.comparison import comparison_text
from mizzen.cli.configuration import (
    add_configuration_options,
    keywords,
    positive_number,
    show_configuration,
    whole_number,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.inputs import read_inputs
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from mizzen.analysis.comparison.exactness import SideBySide
    from mizzen.artifact.interface import Array

SUMMARY = "layer by layer: what the NPU computes beside the quantised reference"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model", metavar="MODEL", help="a quantised .tflite or .pt2 file, or a .tosa file"
    )
    parser.add_argument(
        "--artifact",
        metavar="ARTIFACT",
        help="what was compiled of the model before, by any compiler, instead of compiling it",
    )
    parser.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        nargs="+",
        help="the inputs to compare on, as for `mizzen run` (default: made to tell)",
    )
    parser.add_argument(
        "--inputs",
        metavar="N",
        type=positive_number,
        help="how many inputs to make (default: 2 to 16, more for small networks)",
    )
    parser.add_argument(
        "--seed", metavar="S", type=whole_number, help="of inputs that are made (default: 1)"
    )
    parser.add_argument(
        "--run",
        metavar="N",
        type=positive_number,
        help="inferences in a row from the initial state (default: 4 where the network keeps "
        "state, else 1)",
    )
    add_configuration_options(parser)


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Compile, execute, and say of each layer whether it is what the reference computes."""
    from mizzen.analysis.comparison.exactness import (
        SEED,
        Inputs,
        failures_of,
        run,
        side_by_side,
    )
    from mizzen.artifact.loading import load
    from mizzen.report.comparison import as_dict

    artifact = None if options.artifact is None else load(options.artifact)
    if artifact is not None and options.accelerator_config is None:
        options.accelerator_config = artifact.accelerator
    target = show_configuration(keywords(options), options.model, console)
    with console.progress(f"compiling {options.model}") as change:
        compared = side_by_side(options.model, target, artifact)
        change(f"comparing {options.model}")
        seed = SEED if options.seed is None else options.seed
        arrays = _arrays(options, compared, console)
        inputs = Inputs(arrays, options.inputs, seed, options.run)
        found = run(compared, target, inputs)
    return Answer(
        {"artifact": compared.artifact.name, **as_dict(found)},
        comparison_text(found, width=console.width),
        failures=tuple(failures_of(found)),
        diagnostics=tuple(_diagnostics(compared)),
    )


def _arrays(
    options: argparse.Namespace, compared: SideBySide, console: Console
) -> list[Array] | None:
    if not options.input:
        return None
    return read_inputs(options.input, compared.artifact.inputs, console.note)


def _diagnostics(compared: SideBySide) -> Iterator[Diagnostic]:
    report = compared.artifact.report
    if report is not None:
        yield from report.diagnostics
    yield from compared.artifact.notes
