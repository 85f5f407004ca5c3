"""Which files an artifact can be: what its bytes are already, and an ExecuTorch program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.artifact.forms import own_ending
from mizzen.diagnostics import fail
from mizzen.flatbuffer import ptd
from mizzen.flatbuffer.pte import ENDING

if TYPE_CHECKING:
    from mizzen.artifact.device import Compiled


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

        return _with_manifest_of(artifact, write(device_program(artifact)))
    choices = own if own == ENDING else f"{own}, or {ENDING} for ExecuTorch"
    came = ending or "a file without an ending"
    raise fail(
        "E180",
        f"{artifact.name} must be saved as {choices}, not as {came}",
        help=f"artifact.save('name{own}')",
    )


def bytes_in_two(artifact: Compiled, ending: str, data_ending: str) -> tuple[bytes, bytes]:
    """Return the artifact as an ExecuTorch program, and as a file of the data that it needs.

    The program has no manifest: it takes other weights than these, which no digest in it can be of.
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


def _with_manifest_of(artifact: Compiled, made: bytes) -> bytes:
    """Give a file the facts of the artifact that it is made of; none where that was changed."""
    from mizzen.artifact.sealing import sealed
    from mizzen.artifact.verifying import is_as_written

    manifest = artifact.manifest
    if manifest is None or not is_as_written(artifact):
        return made
    return sealed(made, artifact.name, manifest.facts)
