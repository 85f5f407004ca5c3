"""What would make a network cheaper, tried for the verbs that tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mizzen.cli.configuration import Keywords
from mizzen.cli.console import Console

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.backend import ResolvedTarget
    from mizzen.report.advice import Advice
    from mizzen.report.layers import Layer


def tried_advice(
    model: str,
    made: tuple[Artifact | None, Sequence[Layer]],
    asked: Keywords,
    chosen: ResolvedTarget,
    console: Console,
) -> tuple[Advice, ...]:
    """Try what would make an inference cheaper; nothing of what could not be timed.

    made    what the model was compiled to, and its layers
    asked   how it was compiled
    chosen  for what; on a board, only its memory modes are tried
    """
    from mizzen.analysis.checking.budget import again
    from mizzen.analysis.layers.trials import Subject, advice, network_of
    from mizzen.compiler.compile import source_of

    artifact, layers = made
    if artifact is None or not layers:
        return ()
    board = chosen.board
    modes = None if board is None else [name for mode in board.modes for name in mode.names]
    network = network_of(source_of(model))
    subject = Subject(artifact, layers, again(model, **asked), modes, network, chosen)
    with console.progress(f"trying what would make {model} cheaper") as shown:
        return tuple(
            advice(subject, lambda what: shown(f"trying what would make it cheaper: {what}"))
        )
