"""Say why an artifact fails on a board, by checks and by its firmware's log."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option
from mizzen.cli.configuration import add_board_option, board_of
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, read_size
from mizzen.cli.logs import log_text
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.analysis.doctor import Check, Diagnosis, Firmware
    from mizzen.artifact.artifact import Artifact

SUMMARY = 'why firmware reports only "invoke failed": artifact, board, log'
SHOWN_SIGHTINGS = 20
_MARKS = {True: "holds", False: "FAILS", None: "not checked"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        nargs="?",
        help="what runs on the board: a compiled .tflite, .zip or .pte, or Vela's raw .npz",
    )
    add_data_option(parser)
    add_board_option(parser, "the board that the artifact fails on")
    parser.add_argument(
        "--log",
        metavar="FILE",
        nargs="+",
        default=(),
        help="what the firmware wrote, as text; - reads standard input",
    )
    parser.add_argument(
        "--accelerator-config",
        metavar="NAME",
        help="the NPU that the chip has (default: the log's or the board's)",
    )
    parser.add_argument("--memory-mode", metavar="NAME", help="the memory mode of the firmware")
    _add_firmware_options(parser)
    parser.add_argument(
        "--status", metavar="WORD", type=_word, help="the NPU's STATUS register, as 0x00000804"
    )
    parser.add_argument(
        "--qread", metavar="BYTES", type=_number, help="its QREAD register, as the driver prints it"
    )


def _add_firmware_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--driver-version", metavar="VERSION", help="version of Arm's core driver, as 0.16.0"
    )
    parser.add_argument("--arena", metavar="BYTES", type=_size, help="the arena, as 384K")
    parser.add_argument(
        "--fast", metavar="BYTES", type=_size, help="the fast memory given to ethosu_init"
    )
    parser.add_argument(
        "--model-address", metavar="ADDRESS", type=_number, help="where the model lies"
    )
    parser.add_argument(
        "--arena-address", metavar="ADDRESS", type=_number, help="where the arena lies"
    )
    parser.add_argument(
        "--resolver",
        metavar="OPERATORS",
        help="operators of the firmware's resolver, as ethos-u,SOFTMAX",
    )


def _number(text: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"a number is written like 0x804 or 2052, not {text!r}")
    return number


def _word(text: str) -> int:
    """Read a register, which drivers and debuggers write in hexadecimal."""
    digits = text.lower().removeprefix("0x")
    try:
        word = int(digits, 16)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a register is written like 0x804, not {text!r}"
        ) from None
    if digits == text.lower() and digits != str(word):
        raise argparse.ArgumentTypeError(
            f"a register is written in hexadecimal, like 0x804, not {text!r}: did you mean "
            f"0x{digits}?"
        )
    return word


def _size(text: str) -> int:
    try:
        return read_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a size is written like 393216 or 384K, not {text!r}"
        ) from None


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Diagnose. E200 where there is nothing to look at."""
    from mizzen.analysis.doctor import doctor

    if options.artifact is None and not options.log and options.status is None:
        raise fail(
            "E200",
            "the command line is wrong: doctor takes ARTIFACT, --log or --status",
            help="mizzen doctor --help",
        )
    artifact = None if options.artifact is None else _artifact(options)
    board = board_of(options)
    log = "\n".join(log_text(name) for name in options.log)
    with console.progress(f"examining {options.artifact or 'the log'}"):
        diagnosis = doctor(artifact, board, _firmware(options), log, options.status, options.qread)
    document = {
        "artifact": options.artifact,
        "board": None if board is None else board.name,
        **diagnosis.as_dict(),
    }
    return Answer(document, _text(diagnosis, console), failures=diagnosis.failures)


def _artifact(options: argparse.Namespace) -> Artifact:
    """Read the artifact, whatever NPU it is for: `--accelerator-config` is the chip's."""
    import mizzen

    return mizzen.load(options.artifact, ptd=options.ptd)


def _firmware(options: argparse.Namespace) -> Firmware:
    from mizzen.analysis.doctor import Firmware

    named = options.resolver
    return Firmware(
        accelerator=options.accelerator_config,
        driver=options.driver_version,
        arena_bytes=options.arena,
        fast_bytes=options.fast,
        model_address=options.model_address,
        arena_address=options.arena_address,
        operators=None if named is None else tuple(part.strip() for part in named.split(",")),
        memory_mode=options.memory_mode,
    )


def _text(diagnosis: Diagnosis, console: Console) -> str:
    parts: list[str] = []
    if diagnosis.checks:
        parts.append(f"Checked\n{_checks(diagnosis.checks, console.width)}")
    if diagnosis.log.sightings:
        lines = [
            (f"line {each.line}", f"{each.meaning} ({each.source.value})")
            for each in diagnosis.log.sightings[:SHOWN_SIGHTINGS]
        ]
        parts.append(f"In the log\n{fields(lines, width=console.width)}")
    if diagnosis.status is not None:
        registers = [("STATUS", f"{diagnosis.status.word:#010x}: {diagnosis.status}")]
        if diagnosis.log.qread_bytes == 0:
            registers.append(("QREAD", "0: nothing of the stream was executed"))
        registers += [("QREAD", f"at {place}") for place in diagnosis.places]
        parts.append(f"The NPU\n{fields(registers, width=console.width)}")
    if diagnosis.remarks:
        remarks = [("note", remark) for remark in diagnosis.remarks]
        parts.append(f"Beside\n{fields(remarks, width=console.width)}")
    return "\n\n".join(parts)


def _checks(checks: Sequence[Check], width: int) -> str:
    lines = [(check.name, f"{_MARKS[check.holds]}: {check.said}") for check in checks]
    return fields(lines, width=width)
