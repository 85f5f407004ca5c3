"""The memory mode of an artifact on a board: as compiled, the usual one, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mizzen.boards import Board
from mizzen.diagnostics import Diagnostic, Severity, fail
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact


def compiled_mode(artifact: Artifact) -> str | None:
    """Return the memory mode that an artifact was compiled with, if its report says so."""
    if artifact.report is None:
        return None
    named = artifact.report.configuration.get("memory_mode")
    return named if isinstance(named, str) else None


def mode_on(artifact: Artifact, board: Board) -> str:
    """Return the memory mode that an artifact was compiled with, else `usual_mode`."""
    return compiled_mode(artifact) or usual_mode(artifact.accelerator, board)


def usual_mode(accelerator: str | None, board: Board) -> str:
    """Return the memory mode that a compilation for the board takes where none is asked for."""
    named = accelerator or next(iter(board.accelerators), "")
    if named not in ACCELERATORS:
        return board.modes[0].names[0]
    return board.mode_like(ACCELERATORS[named].traits.memory_mode)


def require_mode_of_software(accelerator: str | None, board: Board, mode: str) -> None:
    """Refuse a memory mode for sources that join the vendor's software: E497.

    That software places model and arena, as in the board's usual mode.
    """
    usual = usual_mode(accelerator, board)
    places, wanted = board.mode(mode).places, board.mode(usual).places
    if board.sdk is None or places == wanted:
        return
    said, has = (
        ", ".join(
            f"the {role.value} in {each[role]}" for role in each if places[role] != wanted[role]
        )
        for each in (places, wanted)
    )
    raise fail(
        "E497",
        f"sources for {board.sdk.title} must be of a memory mode that has {has}, as {usual}, and "
        f"{mode} has {said}",
        help=f"compile the network with --memory-mode {usual}, or export with --bare-metal",
    )


def doubts(artifact: Artifact, board: Board, mode: str, *, is_asked: bool) -> Iterator[Diagnostic]:
    """Warn of what an artifact is likely not to be meant for: W324 to W326.

    mode      that it is laid out for
    is_asked  whether the user named it
    """
    yield from nothing_for_npu(artifact)
    own = compiled_mode(artifact)
    if own is not None and own != mode and board.mode(mode) is not board.mode_of(own):
        yield Diagnostic(
            "W325",
            f"{artifact.name} was compiled for {own}, and is laid out for {mode}",
            Severity.WARNING,
            help=f"leave out --memory-mode, or compile it with --memory-mode {mode}",
        )
    if own is None and artifact.accelerator is not None and not is_asked and len(board.modes) > 1:
        yield Diagnostic(
            "W324",
            f"the memory mode of {artifact.name} is not known, as no report is beside it: "
            f"{mode} is taken",
            Severity.WARNING,
            help="keep the report, NAME.json, beside the artifact, or name the mode with "
            "--memory-mode",
        )


def nothing_for_npu(artifact: Artifact) -> Iterator[Diagnostic]:
    """Warn of a network that the processor computes as a whole: W326."""
    if artifact.accelerator is None:
        yield Diagnostic(
            "W326",
            f"nothing in {artifact.name} is for an NPU: the processor computes the whole network",
            Severity.WARNING,
            help="compile the model first, and give the artifact that `mizzen compile` writes"
            if artifact.report is None
            else "`mizzen check` says of the model why each operator is on the CPU",
        )
