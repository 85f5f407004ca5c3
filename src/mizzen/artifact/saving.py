"""Which files an artifact can be: what its bytes are already, and an ExecuTorch program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.artifact.archive import is_program
from mizzen.artifact.reading import ARCHIVE_START
from mizzen.diagnostics import fail
from mizzen.flatbuffer.pte import ENDING, is_pte

if TYPE_CHECKING:
    from mizzen.artifact.device import Compiled

TFLITE = ".tflite"


def bytes_for(artifact: Compiled, ending: str) -> bytes:
    """Return the artifact as a file of an ending, such as ``.pte``.

    Raises E180 for an ending that it cannot have, E45x and E174 to E176 for what an ExecuTorch
    program cannot hold.
    """
    own = own_ending(artifact.data)
    if ending == own:
        return artifact.data
    if ending == ENDING:
        from mizzen.artifact.device import device_program
        from mizzen.package.executorch.writing import write

        return write(device_program(artifact))
    choices = own if own == ENDING else f"{own}, or {ENDING} for ExecuTorch"
    came = ending or "a file without an ending"
    raise fail(
        "E180",
        f"{artifact.name} must be saved as {choices}, not as {came}",
        help=f"artifact.save('name{own}')",
    )


def own_ending(data: bytes) -> str:
    """Return how files end whose bytes these are."""
    if is_pte(data, ""):
        return ENDING
    if not data.startswith(ARCHIVE_START):
        return TFLITE
    return ".zip" if is_program(data) else ".npz"
