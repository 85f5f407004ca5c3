"""Artifacts with one register that is not as it was compiled."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.isa import Kind


def with_setting(artifact: Artifact, name: str, operation: int, change: int) -> Artifact:
    """Return an artifact in which the last setting of a name before an operation is another."""
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    rows = step.program.instructions
    command = [row for row in rows if row.command.kind is Kind.OPERATION][operation]
    *_, row = (
        row for row in rows if row.name == name and row.offset_words < command.offset_words
    )  # fmt: skip
    words = step.program.words.copy()
    place, low = (row.offset_words + 1, 0) if row.command.words == 2 else (row.offset_words, 16)
    words[place] = (int(words[place]) + (change << low)) % (1 << 32)
    other = copy(step)
    for known in ("simulator", "hazards"):
        other.__dict__.pop(known, None)
    other.program = replace(step.program, words=words)
    other.part = replace(step.part, program=other.program)
    return Artifact(artifact.data, artifact.name, replace(artifact.contents, steps=(other,)))
