"""Run firmware on an emulated Cortex-M, with the NPU simulated."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.configuration import add_board_option, board_of
from mizzen.cli.console import Answer, Console
from mizzen.cli.inputs import read_inputs
from mizzen.cli.layout import count, fields, table
from mizzen.cli.placement import board_title
from mizzen.diagnostics import fail
from mizzen.escaping import quoted_lines

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.interface import Array
    from mizzen.boards import Board
    from mizzen.diagnostics import Diagnostic
    from mizzen.emulate import EmulationResult
    from mizzen.emulate.estimate import TimingModel

SUMMARY = "runs firmware on an emulated Cortex-M with the NPU simulated"
CORES = ("m33", "m55")
FAULTS = ("parse-error", "bus-error", "silent", "wrong-configuration", "late-interrupt")
SHOWN_INVOCATIONS = 10
BOARD = "corstone300"

ELF = b"\x7fELF"
"""How an ELF file starts."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "firmware",
        metavar="FIRMWARE",
        help="an ELF executable for Cortex-M; or an artifact, which a bundled firmware runs and "
        "compares with the host's result",
    )
    add_data_option(parser)
    parser.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        nargs="+",
        default=(),
        help="inputs of an artifact, as for `mizzen run` (default: one inference of zeros)",
    )
    add_board_option(
        parser,
        "the board that is emulated: one that is built in, or a file .toml of your own "
        "(default: corstone300)",
    )
    parser.add_argument(
        "--accelerator-config",
        metavar="NAME",
        help="the Ethos-U on the board (default: the artifact's, else the board's own)",
    )
    parser.add_argument(
        "--cpu",
        choices=CORES,
        default="m33",
        help="m33 by Unicorn, in this process; m55, with vector instructions, by qemu-system-arm "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--load",
        metavar="FILE@ADDRESS",
        action="append",
        type=_load,
        default=[],
        help="a file that lies in memory beside the firmware, as network_constants.bin@0x78000000; "
        "may be repeated",
    )
    parser.add_argument(
        "--inject",
        choices=FAULTS,
        metavar="FAULT",
        help="fault to inject at every start of the NPU: %(choices)s",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="time limit of the run in wall-clock seconds (default: %(default)g)",
    )
    parser.add_argument(
        "--marker",
        metavar="TEXT",
        default="mizzen: ok",
        help="the line that the firmware prints on success (default: %(default)r)",
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="write the accesses of the NPU's registers as JSON"
    )


def _load(text: str) -> tuple[Path, int]:
    name, _, address = text.rpartition("@")
    try:
        place = int(address, 0)
    except ValueError:
        place = -1
    if not name or not 0 <= place < 1 << 32:
        raise argparse.ArgumentTypeError(f"must be FILE@ADDRESS, as x.bin@0x78000000, not {text!r}")
    return Path(name), place


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
    from mizzen.artifact.opening import read_file
    from mizzen.boards import find_board
    from mizzen.emulate import Core, Fault, Options, emulate
    from mizzen.emulate.image import Segment
    from mizzen.files import write_file

    board = board_of(options) or find_board(BOARD)
    firmware, accelerator, timing, doubts = _firmware(options, board, console)
    facts = [
        ("board", board_title(board)),
        ("accelerator", accelerator),
        ("processor", f"Cortex-{options.cpu.upper()}"),
        *([("injected", options.inject)] if options.inject else []),
    ]
    console.note(fields(facts, width=console.width))
    chosen = Options(
        core=Core(options.cpu),
        fault=Fault(options.inject) if options.inject else None,
        seconds=options.timeout,
        marker=options.marker,
        timing=timing,
        beside=tuple(Segment(address, read_file(path)) for path, address in options.load),
    )
    with console.progress(f"running {options.firmware}"):
        result = emulate(firmware, board, accelerator, chosen)
    document = {
        "firmware": options.firmware,
        "board": board.name,
        "accelerator": accelerator,
        "cpu": options.cpu,
        "injected": options.inject,
        **result.as_dict(),
    }
    if options.trace:
        trace = [event.as_dict() for event in result.trace]
        write_file(Path(options.trace), (json.dumps(trace, indent=1) + "\n").encode())
    text = _text(result, console.width)
    diagnostics = (*doubts, *result.notes)
    return Answer(document, text, failures=result.failures, diagnostics=diagnostics)


def _firmware(
    options: argparse.Namespace, board: Board, console: Console
) -> tuple[str | bytes, str, TimingModel, tuple[Diagnostic, ...]]:
    """Return firmware, by path or made of an artifact, the accelerator, what times its streams,
    and what is doubtful.
    """
    from mizzen.analysis.cost.measured import in_measured
    from mizzen.analysis.cost.reporting import configuration_of
    from mizzen.compiler.board import own_accelerator
    from mizzen.emulate.estimate import cycles_in, stream_estimate

    path = Path(options.firmware)
    if not path.is_file() or _is_elf(path):
        if options.input:
            raise fail(
                "E200",
                "the command line is wrong: --input is of an artifact, and firmware has its own",
                help="mizzen emulate --help",
            )
        accelerator = options.accelerator_config or own_accelerator(board)
        return options.firmware, accelerator, _timing(accelerator, board), ()
    from mizzen.export import runner
    from mizzen.export.memory_mode import nothing_for_npu

    artifact = load_artifact(options, path)
    inputs = _inputs(artifact, options.input, console)
    made = runner(artifact, board, inputs)
    accelerator = options.accelerator_config or artifact.accelerator or own_accelerator(board)
    system = configuration_of(artifact, None)
    if system is not None:
        system = in_measured(system, board)
    timing = stream_estimate if system is None else partial(cycles_in, system)
    return made, accelerator, timing, (*artifact.doubts, *nothing_for_npu(artifact))


def _timing(accelerator: str, board: Board) -> TimingModel:
    """Return what times the streams of firmware, whose system configuration nothing says."""
    from mizzen.analysis.cost.measured import in_measured
    from mizzen.emulate.estimate import cycles_in, stream_estimate
    from mizzen.targets.ethos_u.machine.system_config import resolve

    measured = board.measured
    if measured is None or measured.accelerator != accelerator:
        return stream_estimate
    system = resolve(accelerator, system_config=measured.system_config)
    return partial(cycles_in, in_measured(system, board))


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(ELF)) == ELF


def _inputs(artifact: Artifact, given: Sequence[str], console: Console) -> Sequence[Array]:
    if given:
        return read_inputs(given, artifact.inputs, console.note)
    import numpy as np

    return [np.zeros(info.shape, info.dtype) for info in artifact.inputs]


def _text(result: EmulationResult, width: int) -> str:
    parts = [f"Output\n{quoted_lines(result.output)}"] if result.output else []
    runs = result.invocations[:SHOWN_INVOCATIONS]
    if runs:
        lines = [
            (str(index), f"{run.cycles.total:,}", f"{run.status:#010x}")
            for index, run in enumerate(runs)
        ]
        headings = ("run", "cycles", "STATUS")
        shown = table(lines, width=width, headings=headings, right=(0, 1))
        more = result.invocation_count - len(runs)
        others = f"\n  and {more:,} more" if more else ""
        parts.append(f"NPU (cycles are estimates)\n{shown}{others}")
    status = "" if result.exit_status is None else f", status {result.exit_status}"
    ended = [
        ("ended", f"{result.reason.value}{status}"),
        ("NPU", count(result.invocation_count, "run")),
    ]
    parts.append(f"Run\n{fields(ended, width=width)}")
    return "\n\n".join(parts)
