"""Run firmware on an emulated Cortex-M, with the NPU simulated."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields, table
from mizzen.compiler.options import DEFAULT_ACCELERATOR
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.emulate import EmulationResult

SUMMARY = "runs firmware on an emulated Cortex-M with the NPU simulated"
CORES = ("m33", "m55")
FAULTS = ("parse-error", "bus-error", "silent", "wrong-configuration", "late-interrupt")
SHOWN_INVOCATIONS = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("firmware", metavar="FIRMWARE", help="an ELF executable for Cortex-M")
    parser.add_argument(
        "--board",
        metavar="NAME",
        default="corstone300",
        help="corstone300, corstone310, corstone320, or a board's own .toml (default: %(default)s)",
    )
    parser.add_argument(
        "--accelerator-config",
        metavar="NAME",
        default=DEFAULT_ACCELERATOR,
        help="the Ethos-U on the board (default: %(default)s)",
    )
    parser.add_argument(
        "--cpu",
        choices=CORES,
        default="m33",
        help="m33 by Unicorn, in this process; m55, with vector instructions, by qemu-system-arm "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--inject",
        choices=FAULTS,
        metavar="FAULT",
        help="what the NPU is to do wrong whenever it is started: %(choices)s",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="time that the run may take, by the clock (default: %(default)g)",
    )
    parser.add_argument(
        "--marker",
        metavar="TEXT",
        default="mizzen: ok",
        help="the line by which the firmware says that all is well (default: %(default)r)",
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="write the accesses of the NPU's registers as JSON"
    )


def seconds(text: str) -> float:
    """Read the value of an option that is a time."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"seconds of 0..86400 are needed, not {text!r}")
    return value


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Run the firmware and say how it ended."""
    from mizzen.emulate import Core, Fault, Options, emulate

    rows = [
        ("board", options.board),
        ("accelerator", options.accelerator_config),
        ("processor", f"Cortex-{options.cpu.upper()}"),
        *([("injected", options.inject)] if options.inject else []),
    ]
    console.note(fields(rows, width=console.width))
    chosen = Options(
        core=Core(options.cpu),
        fault=Fault(options.inject) if options.inject else None,
        seconds=options.timeout,
        marker=options.marker,
    )
    with console.progress(f"running {options.firmware}"):
        result = emulate(options.firmware, options.board, options.accelerator_config, chosen)
    document = {
        "firmware": options.firmware,
        "board": options.board,
        "accelerator": options.accelerator_config,
        "cpu": options.cpu,
        "injected": options.inject,
        **result.as_dict(),
    }
    if options.trace:
        _write_trace(Path(options.trace), result)
    text = _text(result, console.width)
    return Answer(document, text, failures=result.failures, diagnostics=result.notes)


def _write_trace(path: Path, result: EmulationResult) -> None:
    try:
        path.write_text(json.dumps([row.as_dict() for row in result.trace], indent=1) + "\n")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise fail("E201", f"{path} must be a file that can be written: {reason}") from None


def _text(result: EmulationResult, width: int) -> str:
    lines = [f"  {line}".rstrip() for line in result.output.rstrip("\n").split("\n")]
    parts = ["\n".join(["Output", *lines])] if result.output else []
    runs = result.invocations[:SHOWN_INVOCATIONS]
    if runs:
        rows = [
            (str(index), f"{row.cycles.total:,}", f"{row.status:#010x}")
            for index, row in enumerate(runs)
        ]
        headings = ("run", "cycles", "STATUS")
        shown = table(rows, width=width, headings=headings, right=(0, 1))
        more = result.invocation_count - len(runs)
        parts.append(f"NPU, estimated cycles\n{shown}" + (f"\n  and {more:,} more" if more else ""))
    status = "" if result.exit_status is None else f", status {result.exit_status}"
    ended = [
        ("ended", f"{result.reason.value}{status}"),
        ("NPU", count(result.invocation_count, "run")),
    ]
    parts.append(f"Run\n{fields(ended, width=width)}")
    return "\n\n".join(parts)
