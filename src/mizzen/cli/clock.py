"""The option for the clock that times are told at."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.report.board_figures import BoardFigures

CLOCK_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


SLOWEST_HZ = 10**6
"""A number without its unit is less; no NPU is clocked so slowly."""


def frequency(text: str) -> int:
    """Read the value of an option that is a clock: `400M`, `1.25GHz`, `32000000`."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)(?:[hH][zZ])?", text)
    hertz = 0 if parts is None else round(float(parts[1]) * CLOCK_UNITS[parts[2].lower()])
    if hertz <= 0:
        raise argparse.ArgumentTypeError(f"a clock is written like 400M or 1.2G, not like {text!r}")
    if hertz < SLOWEST_HZ:
        meant = f": did you mean {text}M?" if text.isdecimal() else ""
        raise argparse.ArgumentTypeError(f"a clock is at least 1 MHz, and {text!r} is less{meant}")
    return hertz


def add_clock_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the clock that times are told at."""
    parser.add_argument(
        "--clock",
        metavar="HZ",
        type=frequency,
        help="clock of the NPU for reported times, as 400M; 1 MHz at least (default: the board's, "
        "else the system configuration's)",
    )


def timed_on(artifact: Artifact, board: Board | None, clock_hz: int | None) -> BoardFigures | None:
    """Time an artifact's report on a board and at a clock, and return what these say.

    None where neither is asked for: then what the artifact was compiled for holds.
    """
    from mizzen.compiler.board import figures_of
    from mizzen.compiler.report import with_time

    before = artifact.report.board_figures if artifact.report is not None else None
    if board is None and before is not None and clock_hz is not None:
        figures = replace(before, clock_hz=float(clock_hz))
    else:
        figures = figures_of(board, artifact.accelerator or "", clock_hz)
    if figures is not None:
        with_time(artifact, figures)
    return figures
