"""Whether a network or an artifact fits a board, for the verbs that take one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.cli.console import Console
from mizzen.cli.layout import fields, size
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from mizzen.analysis.checking.budget import Again
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.export import BoardFit
    from mizzen.export.project import Remedy
    from mizzen.report.memory import MemoryReport


@dataclass(frozen=True, slots=True)
class Needs:
    """What a compiled network needs, of a board if one is asked about."""

    memory: MemoryReport | None = None
    fit: BoardFit | None = None

    @property
    def findings(self) -> Sequence[Diagnostic]:
        """What does not fit."""
        return () if self.fit is None else self.fit.findings

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        data: dict[str, object] = {}
        if self.memory is not None:
            data["memory"] = {
                "bytes": dict(self.memory.by_memory),
                "arena_bytes": self.memory.arena_bytes,
                "file_bytes": self.memory.file_bytes,
            }
        if self.fit is not None:
            data["board"] = self.fit.as_dict()
        return data


def needs_of_network(
    artifact: Artifact | None, board: Board | None, compile_again: Again | None = None
) -> Needs:
    """Count what a compiled network needs; nothing of one that nothing could run.

    compile_again  tries what would help; without it, what would is not known
    """
    from mizzen.analysis.memory import memory_report, needs_of
    from mizzen.artifact.written import as_written
    from mizzen.export import memory_fit

    if artifact is None:
        return Needs()
    memory = memory_report(artifact)
    fit = None
    if board is not None:
        remedy = _remedy(artifact, board, compile_again)
        fit = memory_fit(as_written(artifact), board, needs_of(memory), remedy=remedy)
    return Needs(memory, fit)


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
    """Return a title and facts about the needs of a board; none where none is asked about."""
    if needs.fit is None:
        return "", []
    return f"On {needs.fit.board.title}", headroom_rows(needs.fit)


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
