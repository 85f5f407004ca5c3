"""Whether a network or an artifact fits a board, for the verb `check`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mizzen.cli.console import Console
from mizzen.cli.layout import fields, inference, size
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from mizzen.analysis.checking.budget import Again
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.export import BoardFit
    from mizzen.export.project import Remedy
    from mizzen.report.cost import CostReport, InferenceTime
    from mizzen.report.memory import MemoryReport

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


@dataclass(frozen=True, slots=True)
class Needs:
    """What a compiled network needs, of a board if one is asked about.

    time         of an inference at the clock that is asked for; None where none is, or no model
                 knows it
    lacks_clock  whether a time is missing as the board's file has no clock
    """

    memory: MemoryReport | None
    fit: BoardFit | None
    time: InferenceTime | None
    lacks_clock: bool = False

    @property
    def findings(self) -> Sequence[Diagnostic]:
        """What does not fit."""
        return () if self.fit is None else self.fit.findings

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        from mizzen.report.compilation import time_data

        data: dict[str, object] = {}
        if self.memory is not None:
            data["memory"] = {
                "bytes": dict(self.memory.by_memory),
                "arena_bytes": self.memory.arena_bytes,
                "file_bytes": self.memory.file_bytes,
            }
        if self.fit is not None:
            data["board"] = self.fit.as_dict()
        if self.time is not None:
            data["time"] = time_data(self.time)
        return data


def needs_of_network(
    artifact: Artifact | None,
    cost: CostReport | None,
    board: Board | None,
    clock: int | None,
    compile_again: Again | None = None,
) -> Needs:
    """Count what a compiled network needs; nothing of one that nothing could run.

    cost           what it costs; None where no timing model knows
    clock          of the NPU, in Hz; None for the board's
    compile_again  tries what would help; without it, what would is not known
    """
    from mizzen.analysis.memory import memory_report, needs_of
    from mizzen.artifact.written import as_written
    from mizzen.export import memory_fit

    if artifact is None:
        return Needs(None, None, None)
    memory = memory_report(artifact)
    fit = None
    if board is not None:
        remedy = _remedy(artifact, board, compile_again)
        fit = memory_fit(as_written(artifact), board, needs_of(memory), remedy=remedy)
    accelerator = artifact.accelerator
    if board is not None and fit is not None and accelerator is not None and not fit.findings:
        board = board.for_npu(accelerator)
    clock_hz = clock or (None if board is None else board.npu.clock_hz)
    time = None if cost is None or clock_hz is None else replace(cost.time, clock_hz=clock_hz)
    lacks_clock = cost is not None and board is not None and clock_hz is None
    return Needs(memory, fit, time, lacks_clock)


def _remedy(artifact: Artifact, board: Board, compile_again: Again | None) -> Remedy | None:
    """Return the advice on what would help, of the memory modes that the board has."""
    report = artifact.report
    if report is None or compile_again is None:
        return None
    modes = [name for mode in board.modes for name in mode.names]

    def said(over_bytes: int) -> str:
        from mizzen.analysis.checking.budget import what_would_help

        return what_would_help(report, artifact, over_bytes, compile_again, modes)

    return said


def needs_facts(needs: Needs) -> tuple[str, list[tuple[str, str]]]:
    """Return a title and facts about the needs of a board and the time at a clock."""
    facts: list[tuple[str, str]] = []
    if needs.fit is not None:
        facts += headroom_rows(needs.fit)
    if needs.time is not None:
        facts.append(("time", inference(needs.time)))
    if needs.lacks_clock:
        facts.append(("time", "not known: the board file has no NPU clock; --clock gives it"))
    return "At another clock" if needs.fit is None else f"On {needs.fit.board.title}", facts


def needs_text(needs: Needs, console: Console) -> str:
    """Return the facts about the needs as a text; empty where there are none."""
    title, facts = needs_facts(needs)
    return f"{title}\n{fields(facts, width=console.width)}" if facts else ""


def headroom_rows(fit: BoardFit) -> list[tuple[str, str]]:
    """Return the bytes that each memory of the board holds and has left."""
    facts = [("memory mode", fit.memory_mode)]
    for room in fit.headroom:
        left = f"{size(room.left_bytes)} left" if room.left_bytes >= 0 else "too small"
        facts.append((room.memory, f"{size(room.used_bytes)} of {size(room.size_bytes)}, {left}"))
    return facts
