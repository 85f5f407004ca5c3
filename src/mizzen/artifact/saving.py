"""Which files an artifact can be: what its bytes are already, and an ExecuTorch program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.artifact.archive import is_program
from mizzen.artifact.reading import ARCHIVE_START
from mizzen.diagnostics import fail
from mizzen.flatbuffer import ptd
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


def bytes_in_two(artifact: Compiled, ending: str, data_ending: str) -> tuple[bytes, bytes]:
    """Return the artifact as an ExecuTorch program, and as a file of the data that it needs.

    Raises E824 for other endings than ``.pte`` and ``.ptd``, or an artifact that is an ExecuTorch
    program already, E45x and E174 to E176 for what such a program cannot hold.
    """
    if (ending, data_ending) != (ENDING, ptd.ENDING) or own_ending(artifact.data) == ENDING:
        raise fail(
            "E824",
            f"weights in a file of their own are for a program {ENDING} that is made here, with a "
            f"file {ptd.ENDING} beside it, not for {artifact.name} as "
            f"{ending or 'a file without an ending'} with {data_ending or 'such a one'}",
            help="artifact.save('net.pte', ptd='net.ptd') of what mizzen.compile gives",
        )
    from mizzen.artifact.device import device_program
    from mizzen.package.executorch.writing import write_in_two

    parts = write_in_two(device_program(artifact))
    return parts.program, parts.data


def own_ending(data: bytes) -> str:
    """Return how files end whose bytes these are."""
    if is_pte(data, ""):
        return ENDING
    if not data.startswith(ARCHIVE_START):
        return TFLITE
    return ".zip" if is_program(data) else ".npz"
