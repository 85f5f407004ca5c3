"""An artifact as a project of the C runtime for a board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.batching import batch_of
from mizzen.boards import Board, Role, board_header, linker_script
from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.export.c_container import c_container
from mizzen.package.c.project import (
    NO_EXAMPLE,
    Example,
    Surroundings,
    kernels_of,
    project_files,
)
from mizzen.package.c.reader import decode

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class CProject:
    """A project, ready to be written.

    files       contents by path
    kernels     kernels of the processor that are linked
    needed      bytes that the container, the arena and the fast memory take, by role
    inferences  of the example
    """

    files: Mapping[str, bytes]
    kernels: Sequence[str]
    needed: Mapping[Role, int]
    memory_mode: str
    inferences: int


def c_project(
    artifact: Artifact,
    board: Board,
    *,
    memory_mode: str | None = None,
    inputs: Sequence[Array] = (),
) -> CProject:
    """Return the project of an artifact.

    memory_mode  a name of `vela.ini`; by default the one that the network was compiled with, where
                 the artifact says so, else the board's first
    inputs       of an example, which the firmware executes and compares: a batch of N is N
                 inferences, one after the other

    Raises E450 to E466 as `c_container`, E415 for an NPU or memory mode that the board does not
    have, E468 if a memory of the board is too small, E711 to E713 for inputs that do not fit.
    """
    container = c_container(artifact)
    mode = memory_mode or compiled_mode(artifact) or board.modes[0].names[0]
    accelerator = artifact.accelerator or board.npu.products[0]
    needed = container_needs(container.data)
    for row in memory_findings(board, mode, needed):
        raise MizzenError(row)
    around = Surroundings(
        board_header(board, accelerator, mode),
        linker_script(board, mode),
        board.cpu.core,
        board.ports_of(accelerator).product.removeprefix("ethos-"),
    )
    example = example_of(artifact, inputs)
    files = project_files(container.data, container.program, around, example)
    return CProject(files, kernels_of(container.program), needed, mode, example.inferences)


def compiled_mode(artifact: Artifact) -> str | None:
    """Return the memory mode that an artifact was compiled with, if its report says so."""
    if artifact.report is None:
        return None
    found = artifact.report.configuration.get("memory_mode")
    return found if isinstance(found, str) else None


def container_needs(container: bytes) -> Mapping[Role, int]:
    """Return the bytes that a container and its memories take, by role."""
    header = decode(container).header
    return {
        Role.MODEL: len(container),
        Role.ARENA: header["arena_bytes"],
        Role.FAST: header["fast_bytes"],
    }


def memory_findings(board: Board, mode: str, needed: Mapping[Role, int]) -> Iterator[Diagnostic]:
    """Return an E468 for each memory of the board that what lies in it does not fit."""
    for memory in board.memories:
        asked = {
            role: size
            for role, size in needed.items()
            if board.memory(role, board.mode(mode)).name == memory.name
        }
        if sum(asked.values()) > memory.size_bytes:
            parts = ", ".join(f"{role.value} {size}" for role, size in asked.items())
            yield fail(
                "E468",
                f"{memory.name} of {board.name} must hold {sum(asked.values())} bytes ({parts}), "
                f"and has {memory.size_bytes}",
                help="choose another memory mode, or compile with --optimise Size",
            ).diagnostic


def example_of(artifact: Artifact, inputs: Sequence[Array]) -> Example:
    """Execute an example here, its state going on as it does on the device; none without inputs.

    E711 to E713 for inputs that do not fit.
    """
    if not inputs:
        return NO_EXAMPLE
    batch = batch_of(inputs, artifact.inputs)
    session = artifact.session()
    given: list[bytes] = []
    found: list[bytes] = []
    for place in range(batch.size):
        arrays = batch.part(place, place + 1).arrays
        given += [_bytes(array) for array in arrays]
        outputs = session.run(*(array[0] for array in arrays))
        found += [_bytes(row) for row in (outputs if isinstance(outputs, tuple) else (outputs,))]
    return Example(batch.size, b"".join(given), b"".join(found))


def _bytes(array: Array) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
