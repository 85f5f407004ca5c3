"""Compile networks of one operator each; compare their results with the kernels."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.configuration import names_list, positive_number
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, paragraph, table
from mizzen.compiler.options import DEFAULT_ACCELERATOR
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from mizzen.conformance.table import Finding
    from mizzen.conformance.verdict import Row

SUMMARY = "which operators a compiler gets exactly right, and which not"
INPUTS = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--compiler",
        choices=("vela", "vela-legacy", "own", "mizzen"),
        default="vela",
        help="the compiler to judge: Vela's compiled core; its deprecated core in Python "
        "(--debug-force-legacy-core); Mizzen's own rules, unproved; or `mizzen compile` "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--accelerator-config",
        metavar="NAME[,NAME...]",
        type=names_list,
        default=(DEFAULT_ACCELERATOR,),
        help=f"Ethos-U NPUs; `mizzen targets` lists them (default: {DEFAULT_ACCELERATOR})",
    )
    parser.add_argument(
        "--operator",
        metavar="OP[,OP...]",
        type=names_list,
        default=(),
        help="types of operators, for instance CONV_2D (default: all)",
    )
    parser.add_argument(
        "--type",
        metavar="TYPE[,TYPE...]",
        type=names_list,
        default=(),
        help="data types, for instance int16 (default: all)",
    )
    parser.add_argument(
        "--inputs",
        metavar="N",
        type=positive_number,
        default=INPUTS,
        help="random inputs for each network (default: %(default)s)",
    )
    parser.add_argument(
        "--optimise",
        metavar="{Performance,Size}",
        default="Performance",
        help="fewer cycles, or less memory (default: %(default)s)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "markdown"),
        default="text",
        help="how the table is written (default: %(default)s)",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Run the networks that were asked for, and return the table."""
    from mizzen.conformance.cases import selected
    from mizzen.conformance.compilers import Compiler
    from mizzen.conformance.suite import run
    from mizzen.targets.ethos_u.machine.system_config import resolve

    chosen = selected(options.operator, options.type)
    names: Sequence[str] = options.accelerator_config
    configurations = [resolve(name, optimise=options.optimise) for name in names]
    compiler = Compiler(options.compiler)
    console.note(f"{count(len(chosen), 'network')} through {compiler.label} on {', '.join(names)}")
    outcomes: list[Row] = []
    number = len(chosen) * len(names)
    with console.progress("running the networks") as show:
        for outcome in run(chosen, compiler, configurations, options.inputs):
            outcomes.append(outcome)
            show(f"{len(outcomes)} of {number} networks, {outcome.case} on {outcome.accelerator}")
    document = {
        "compiler": compiler.value,
        "accelerators": list(names),
        "optimise": options.optimise,
        "inputs": options.inputs,
        "rows": [each.as_dict() for each in outcomes],
    }
    if options.format == "markdown":
        from mizzen.conformance.table import markdown

        text = markdown(outcomes, names)
    else:
        text = _text(outcomes, names, console)
    return Answer(document, text, failures=_failures(outcomes))


def _text(outcomes: Sequence[Row], names: Sequence[str], console: Console) -> str:
    from mizzen.conformance.table import FOOTNOTE, findings, heading, lines

    headings = ("operator", "type", *names)
    cells = [(line.operator, line.dtype, *line.cells) for line in lines(outcomes, names)]
    parts = [f"Networks\n{table(cells, width=console.width, headings=headings)}"]
    grouped = findings(outcomes)
    for verdict in dict.fromkeys(finding.verdict for finding in grouped):
        alike = [finding for finding in grouped if finding.verdict is verdict]
        parts.append("\n".join([heading(verdict), *_details(alike, len(names), console)]))
    if any(outcome.exception is not None for outcome in outcomes):
        parts.append(FOOTNOTE)
    return "\n\n".join(parts)


def _details(findings: Sequence[Finding], accelerators: int, console: Console) -> Iterator[str]:
    """Write a paragraph for each finding: the networks, and below what there is to say."""
    for finding in findings:
        everywhere = len(finding.accelerators) == accelerators
        where = "" if everywhere else f" on {', '.join(finding.accelerators)}"
        names = f"{', '.join(finding.cases)}{where}"
        yield paragraph(names, width=console.width, indent="  ")
        for said in (finding.what, finding.exception and f"* {finding.exception}"):
            if said:
                yield paragraph(said, width=console.width, indent="    ")


def _failures(outcomes: Sequence[Row]) -> list[Diagnostic]:
    wrong = [outcome for outcome in outcomes if not outcome.holds]
    if not wrong:
        return []
    return [
        Diagnostic(
            "E723",
            "every network must be exact, on the CPU or a documented exception, and "
            f"{len(wrong)} of {len(outcomes)} are not",
        )
    ]
