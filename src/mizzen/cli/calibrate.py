"""Compare what a board measured with estimates, and fit the board's memories.

Logs are of Mizzen's firmware, Arm's evaluation kit, ExecuTorch, TensorFlow Lite
Micro, Zephyr, Linux and others.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.configuration import add_board_option, file_name
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields, table
from mizzen.cli.logs import log_bytes
from mizzen.diagnostics import Diagnostic, Severity, fail

if TYPE_CHECKING:
    from mizzen.analysis.measurement.calibration import Calibration, Run
    from mizzen.analysis.measurement.fitting import Fitted
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

SUMMARY = "measured counters beside estimates; a board's memories as measured"
SHOWN_COUNTS = 20
BOARD = "corstone300"
SUFFIX = ".toml"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        help="what ran on the board: a compiled .tflite, .zip or .pte, or Vela's raw .npz",
    )
    add_data_option(parser)
    parser.add_argument(
        "--log",
        metavar="FILE",
        nargs="+",
        required=True,
        help="what the firmware wrote, or an ETDump; - reads standard input",
    )
    parser.add_argument(
        "--also",
        metavar="ARTIFACT=LOG",
        action="append",
        type=_pair,
        default=[],
        help="another artifact that ran on the same board, and its log; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.toml",
        type=file_name,
        help="write a board's file with the measured memories, for --board of other verbs",
    )
    group = parser.add_argument_group("configuration")
    add_board_option(group, "the board that it ran on (default: the one that it was compiled for)")
    group.add_argument("--accelerator-config", metavar="NAME", help="the NPU of a raw .npz")
    group.add_argument(
        "--config", metavar="FILE", action="append", help="a vela.ini of your own; may be repeated"
    )
    group.add_argument(
        "--system-config",
        metavar="NAME",
        help="section of vela.ini that memories are taken from before (default: the one that the "
        "artifact was compiled for)",
    )
    group.add_argument(
        "--memory-mode",
        metavar="NAME",
        help="section of vela.ini with what lies where (default: the same)",
    )


def _pair(text: str) -> tuple[str, str]:
    artifact, _, log = text.rpartition("=")
    if not artifact or not log:
        raise argparse.ArgumentTypeError(f"ARTIFACT=LOG is needed, not {text!r}")
    return artifact, log


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Compare and fit, and write what was measured. E747 for a file that is no .toml."""
    from mizzen.analysis.measurement.calibration import Run, calibrate, read_log
    from mizzen.boards import find_board

    if options.output is not None and not options.output.endswith(SUFFIX):
        raise fail(
            "E747",
            f"a board's file must end with {SUFFIX}, not {Path(options.output).name!r}",
            help=f"--output {Path(options.output).stem or 'mine'}{SUFFIX}",
        )
    logs = [read_log(Path(name).name, log_bytes(name)) for name in options.log]
    artifact = load_artifact(options, options.artifact)
    parent = _parent(options, artifact)
    board = None if parent.doubt else find_board(parent.name)
    system = _system(options, artifact, board)
    runs = [Run(artifact, tuple(logs)), *_others(options, system)]
    with console.progress(f"fitting the memories of {system.system.name}"):
        found = calibrate(runs, system)
    written = _write(options, found, parent) if not found.failures else None
    document = {
        **found.as_dict(),
        "board": None if board is None else board.name,
        "written": written,
        "inherits": parent.name if written else None,
    }
    text = _text(found, options.output, written and parent.name, console)
    guess = (parent.doubt,) if written and parent.doubt else ()
    diagnostics = (*artifact.doubts, *system.warnings, *found.diagnostics, *guess)
    return Answer(document, text, failures=found.failures, diagnostics=diagnostics)


@dataclass(frozen=True, slots=True)
class _Parent:
    """The board that it ran on, which a written file inherits.

    name   or file
    doubt  where it is a guess
    """

    name: str
    doubt: Diagnostic | None = None


def _parent(options: argparse.Namespace, artifact: Artifact) -> _Parent:
    """Return the board that is asked about, or that the artifact was compiled for, or a guess."""
    from mizzen.boards import board_names, find_board

    if options.board is not None:
        own = options.board.endswith(SUFFIX)
        return _Parent(options.board if own else find_board(options.board).name)
    report = artifact.report
    figures = None if report is None else report.board_figures
    known = "" if figures is None else figures.board
    if known in board_names():
        return _Parent(known)
    why = f"was compiled for {known}, whose file is elsewhere" if known else "names none"
    doubt = Diagnostic(
        "W354",
        f"{options.output} should inherit the board that {artifact.name} ran on, which {why}: it "
        f"inherits {BOARD}",
        Severity.WARNING,
        help=f"--board {known or 'NAME'}{SUFFIX if known else ', one of `mizzen targets`'}",
    )
    return _Parent(BOARD, doubt)


def _system(
    options: argparse.Namespace, artifact: Artifact, board: Board | None
) -> EthosUConfiguration:
    """Return the system that estimates are of before the fit.

    E415, E442 for an NPU that the board has not, E741 for an artifact without one of Ethos-U.
    """
    from mizzen.analysis.cost.measured import in_measured
    from mizzen.analysis.cost.reporting import configuration_of
    from mizzen.targets.ethos_u.machine.system_config import resolve

    if board is not None and artifact.accelerator is not None:
        board.require_npu(artifact.accelerator)
    known = configuration_of(artifact, None)
    if known is None:
        raise fail(
            "E741",
            f"{artifact.name} must have a program of Ethos-U, whose counters a log is of, and has "
            "none",
            help="give the artifact that ran on the board",
        )
    if options.config or options.system_config or options.memory_mode:
        known = resolve(
            known.accelerator.name,
            config=options.config,
            system_config=options.system_config or known.system.name,
            memory_mode=options.memory_mode or known.mode.name,
        )
    return known if board is None else in_measured(known, board)


def _others(options: argparse.Namespace, system: EthosUConfiguration) -> Iterator[Run]:
    """Return the other artifacts with their logs. E749 for one that was compiled otherwise."""
    import mizzen
    from mizzen.analysis.cost.reporting import configuration_of
    from mizzen.analysis.measurement.calibration import Run, read_log

    for name, log in options.also:
        artifact = mizzen.load(name)
        own = configuration_of(artifact, None)
        ours = (system.accelerator.name, system.mode.name)
        theirs = None if own is None else (own.accelerator.name, own.mode.name)
        if theirs is not None and theirs != ours:
            raise fail(
                "E749",
                f"all artifacts must run alike, on {' in '.join(ours)}, and {artifact.name} is for "
                f"{' in '.join(theirs)}",
                help="fit each by itself",
            )
        yield Run(artifact, (read_log(Path(log).name, log_bytes(log)),))


def _write(options: argparse.Namespace, found: Calibration, parent: _Parent) -> str | None:
    """Write the board's file; nothing where the counts tell nothing of memories."""
    from mizzen.boards import find_board, measured_file
    from mizzen.files import write_file

    measured = found.measured()
    if options.output is None or measured is None:
        return None
    path = Path(options.output)
    named = parent.name
    if named.endswith(SUFFIX):
        named = os.path.relpath(named, path.parent)
        if Path(named) == Path(path.name):
            raise fail(
                "E748",
                f"{path} must inherit another board's file, and --board names itself",
                help=f"--output {path.stem}_measured{SUFFIX}",
            )
    text = measured_file(named, path.stem, f"{find_board(parent.name).title}, measured", measured)
    write_file(path, text.encode())
    return options.output


def _text(found: Calibration, asked: str | None, parent: str | None, console: Console) -> str:
    """Return what is shown; `parent` is the board that a written file inherits."""
    parts = [
        f"{', '.join(found.artifacts)}\n{fields(list(_head(found)), width=console.width)}",
        _memories(found, console.width),
        f"Estimates off by\n{_deviations(found, console.width)}",
        _counts(found, console.width),
    ]
    if found.beats:
        parts.append(_beats(found, console.width))
    if found.cpu:
        parts.append(_cpu(found, console.width))
    if asked is not None:
        why = "nothing: the counts say nothing about the memories"
        if found.failures:
            why = "nothing: the memories do not explain the counts"
        parts.append(f"Written\n{fields([(asked, _what(parent, why))], width=console.width)}")
    return "\n\n".join(parts)


def _what(parent: str | None, why: str) -> str:
    return why if parent is None else f"{parent} with its memories as measured"


def _head(found: Calibration) -> Iterator[tuple[str, str]]:
    for log in found.logs:
        said = count(len(log.measurements), "measurement")
        yield "log", f"{log.name}, {said}, sha256 {log.digest[:16]}"
    yield "forms", ", ".join(each.title for each in found.formats)
    yield "compared", f"{count(len(found.fit.samples), 'count')}, of {found.counts} measured"
    system = found.system
    yield "before", f"{system.accelerator.name}, {system.system.name}, {system.mode.name}"


def _memories(found: Calibration, width: int) -> str:
    lines = [
        (
            "timer" if each.parameter.memory is None else each.parameter.memory.value,
            each.parameter.quantity.value,
            f"{each.parameter.before:.4g}",
            f"{each.value:.4g}" if each.told else "-",
            _told(each),
        )
        for each in found.fit.fitted
    ]
    headings = ("memory", "number", "before", "measured", "known")
    return f"Memories\n{table(lines, width=width, headings=headings, right=(2, 3))}"


def _told(each: Fitted) -> str:
    if not each.told:
        return "no: the counts fit as well with half or double"
    bound = ", the most or least that is possible" if each.at_bound else ""
    return f"within a factor of {each.error:.2f}{bound}"


def _deviations(found: Calibration, width: int) -> str:
    from mizzen.analysis.measurement.fitting import median, worst

    held = found.fit.held_out
    rows = [("all counts", found.fit.before, found.fit.after)]
    if held is not None:
        rows.append(("held out", held.before, held.after))
    lines = [
        (name, *(f"{said(ratios):.1%}" for ratios in both for said in (median, worst)))
        for name, *both in rows
    ]
    headings = ("", "median before", "worst", "median after", "worst")
    text = table(lines, width=width, headings=headings, right=(1, 2, 3))
    return text if held is not None else f"{text}\n  too few counts to hold any out"


def _counts(found: Calibration, width: int) -> str:
    from mizzen.analysis.measurement.calibration import samples_of

    rows = samples_of(found)
    lines = [
        (
            sample.name,
            f"{sample.measured:,.0f}",
            "ticks" if sample.in_ticks else "cycles",
            f"{sample.spread:.1%}" if sample.inferences > 1 else "-",
            f"{before:.2f}",
            f"{after:.2f}",
        )
        for sample, before, after in rows[:SHOWN_COUNTS]
    ]
    headings = ("count", "measured", "", "spread", "before", "after")
    shown = table(lines, width=width, headings=headings, right=(1, 3, 4))
    more = len(rows) - len(lines)
    others = f"\n  and {more} more" if more else ""
    return f"Estimates over counts, the furthest off first\n{shown}{others}"


def _beats(found: Calibration, width: int) -> str:
    lines = [(each.event, f"{each.counted:,.0f}", f"{each.expected:,.0f}") for each in found.beats]
    headings = ("beats of an inference", "counted", "expected")
    return f"Beats\n{table(lines, width=width, headings=headings, right=(1,))}"


def _cpu(found: Calibration, width: int) -> str:
    lines: Sequence[Sequence[str]] = [
        (each.name, f"{each.ticks:,.0f}", f"{each.estimate:,}") for each in found.cpu
    ]
    headings = ("operator", "ticks measured", "cycles estimated")
    return f"On the CPU\n{table(lines, width=width, headings=headings, right=(1,))}"
