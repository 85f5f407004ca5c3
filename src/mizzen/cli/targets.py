"""List accelerators, system configurations, memory modes, operators and boards."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mizzen.cli.board_tables import board_data, board_text, boards_text
from mizzen.cli.configuration import add_board_option, board_of
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, paragraph, size, table
from mizzen.diagnostics import did_you_mean, fail

if TYPE_CHECKING:
    from mizzen.compiler.support import Cell, Support, SupportRule, SupportTable, SupportText

SUMMARY = "accelerators, memory modes, supported operators"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the vela.ini to list (default: all bundled ones)",
    )
    add_board_option(parser, "only what is known of a board")
    parser.add_argument(
        "--operator",
        metavar="TYPE",
        help="list the limits of one type of operator only, for instance CONV_2D",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """List what there is."""
    from mizzen.boards import board_names
    from mizzen.compiler.backend import backends

    if (board := board_of(options)) is not None:
        return Answer(board_data(board), board_text(board, width=console.width))
    supports = [backend.support(options.config) for backend in backends()]
    if options.operator is not None:
        return _operator_answer(options.operator, supports, console)
    document = {
        "accelerators": [accelerator for each in supports for accelerator in each.accelerators],
        "files": {name: file for each in supports for name, file in each.files.items()},
        "operators": _operators(supports),
        "rules": [
            {**rule.as_dict(), "operators": sorted(rule.operators)}
            for each in supports
            for rule in each.rules
        ],
        "inferred": [path for each in supports for path in each.inferred],
        "boards": list(board_names()),
    }
    parts = [_part(part, console) for each in supports for part in each.parts]
    parts.append(boards_text(width=console.width))
    parts.append("`mizzen targets --operator TYPE` gives an operator's limits.")
    return Answer(document, "\n\n".join(parts))


def _operators(supports: Sequence[Support]) -> dict[str, tuple[str, ...]]:
    """Return the operators that an NPU has a form of, each with the products that have it."""
    return {kind: npus for each in supports for kind, npus in each.operators.items()}


def _part(part: SupportTable | SupportText, console: Console) -> str:
    from mizzen.compiler.support import SupportText

    if isinstance(part, SupportText):
        return f"{part.title}\n{paragraph(part.text, width=console.width, indent='  ')}"
    lines = [tuple(map(_shown, line)) for line in part.rows]
    text = table(lines, width=console.width, headings=part.headings, right=part.right)
    return f"{part.title}\n{text}"


def _shown(cell: Cell) -> str:
    return cell if isinstance(cell, str) else size(cell)


def _operator_answer(name: str, supports: Sequence[Support], console: Console) -> Answer:
    from mizzen.compiler.support import is_operator

    known = _operators(supports)
    spelled = {kind.upper(): kind for kind in known}
    kind = spelled.get(name.upper())
    if kind is None and is_operator(name.upper()):
        return _without_form(name.upper(), console)
    if kind is None:
        help = did_you_mean(name, known) or "`mizzen targets` lists them"
        raise fail("E204", f"--operator must be a type that an NPU has, not {name!r}", help=help)
    named = (rule for each in supports for rule in each.rules if kind in rule.operators)
    rules = [replace(rule, npus=_in_both(rule.npus, known[kind])) for rule in named]
    rules = [rule for rule in rules if rule.npus]
    parts = [f"{kind}\n{fields([('NPU', ', '.join(known[kind]))], width=console.width)}"]
    parts += [_rule_text(kind, rule, console) for rule in rules]
    document = {"type": kind, "npus": known[kind], "rules": [rule.as_dict() for rule in rules]}
    return Answer(document, "\n\n".join(parts))


def _in_both(npus: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the NPUs of a rule that have the operator, too."""
    return tuple(npu for npu in npus if npu in others)


def _without_form(kind: str, console: Console) -> Answer:
    """Say that an operator of TFLite has no form on any NPU."""
    said = "none has a form of it: it goes to the CPU, if TensorFlow Lite Micro has a kernel"
    text = f"{kind}\n{fields([('NPU', said)], width=console.width)}"
    return Answer({"type": kind, "npus": [], "rules": []}, text)


def _rule_text(kind: str, rule: SupportRule, console: Console) -> str:
    facts = [
        ("NPU", ", ".join(rule.npus)),
        ("must have", rule.limit),
        ("help", rule.help),
        ("rule", rule.source),
    ]
    return f"{kind}: {rule.id}\n{fields(facts, width=console.width)}"
