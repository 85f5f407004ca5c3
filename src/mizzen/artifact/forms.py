"""Which kind of file an artifact's bytes are."""

from __future__ import annotations

from mizzen.artifact.archive import is_program
from mizzen.artifact.reading import ARCHIVE_START
from mizzen.flatbuffer.pte import ENDING, is_pte

TFLITE = ".tflite"
ARCHIVE = ".zip"


def own_ending(data: bytes) -> str:
    """Return how files end whose bytes these are."""
    if is_pte(data, ""):
        return ENDING
    if not data.startswith(ARCHIVE_START):
        return TFLITE
    return ARCHIVE if is_program(data) else ".npz"
