"""A project of any runtime: what it is as data, and what all of them ask of artifact and board."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.batching import batch_of
from mizzen.boards import Board, Role, Sdk, board_header, linker_script, sdk_header
from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.export.external import External
from mizzen.export.memory_mode import mode_on, require_mode_of_software
from mizzen.package.firmware import NO_EXAMPLE, Example, Surroundings

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """A project, ready to be written.

    files       contents by path
    kernels     what the processor executes: kernels that are linked, as the runtime names them
    needed      bytes that the model, the arena and the fast memory take, by role
    inferences  of the example
    missing     variables of make that name checkouts, and were not given yet
    model       the bytes that the runtime opens
    """

    files: Mapping[str, bytes]
    kernels: Sequence[str]
    needed: Mapping[Role, int]
    memory_mode: str
    inferences: int
    missing: Sequence[str] = ()
    model: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What a project is asked for.

    memory_mode  a name of `vela.ini`; by default the one that the network was compiled with, where
                 the artifact says so, else the board's usual one
    inputs       of an example, which the firmware executes and compares: a batch of N is N
                 inferences, one after the other
    made         an example where there are no `inputs`, left out if the board has no room for it
    checkouts    folders of others' sources, by the variable of make: `checked` ones
    bare_metal   a firmware of its own, even where the board has a vendor's software
    external     what of the network is a file apart from the firmware; None to link it all
    """

    board: Board
    memory_mode: str | None = None
    inputs: Sequence[Array] = ()
    made: Sequence[Array] = ()
    checkouts: Mapping[str, str] | None = None
    bare_metal: bool = False
    external: External | None = None

    @property
    def sdk(self) -> Sdk | None:
        """The vendor's software that the project joins; None for a firmware of its own."""
        return None if self.bare_metal else self.board.sdk

    def mode_for(self, artifact: Artifact) -> str:
        """Return the memory mode for an artifact."""
        return self.memory_mode or mode_on(artifact, self.board)


def surroundings(artifact: Artifact, request: Request, mode: str) -> Surroundings:
    """Return a project's surroundings; the NPU is the board's where the artifact needs none."""
    board = request.board
    accelerator = artifact.accelerator or board.npu.products[0]
    board.mode(mode)
    if request.sdk is not None:
        require_mode_of_software(artifact.accelerator, board, mode)
    header, script = _texts(request, accelerator, mode)
    return Surroundings(
        header,
        script,
        board.cpu.core,
        board.ports_of(accelerator).product.removeprefix("ethos-"),
        request.checkouts or {},
        artifact.accelerator is not None,
    )


def _texts(request: Request, accelerator: str, mode: str) -> tuple[str, str]:
    """Return the board's header and its linker script, which the vendor's software has itself."""
    board = request.board
    if request.sdk is not None:
        return sdk_header(board.title, request.sdk), ""
    return board_header(board, accelerator, mode), linker_script(board, mode)


Remedy = Callable[[int], str]
"""Says what would help an arena that needs so many bytes too many."""

FITTING = "use a network with smaller feature maps or fewer weights, or a board with more memory"
"""What is known to help without a try."""


def require_memory(board: Board, mode: str, needed: Mapping[Role, int]) -> None:
    """Refuse a board with too little memory: E468."""
    for finding in memory_findings(board, mode, needed):
        raise MizzenError(finding)


def memory_findings(
    board: Board, mode: str, needed: Mapping[Role, int], remedy: Remedy | None = None
) -> Iterator[Diagnostic]:
    """Return an E468 for each memory of the board that what lies in it does not fit."""
    for memory in board.memories:
        asked = {
            role: size
            for role, size in needed.items()
            if board.memory(role, board.mode(mode)).name == memory.name
        }
        if sum(asked.values()) > memory.size_bytes:
            parts = ", ".join(f"{role.value} {size}" for role, size in asked.items())
            over = sum(asked.values()) - memory.size_bytes
            yield fail(
                "E468",
                f"{memory.name} of {board.name} must hold {sum(asked.values())} bytes ({parts}), "
                f"and has {memory.size_bytes}",
                help=FITTING if remedy is None or Role.ARENA not in asked else remedy(over),
            ).diagnostic


PART_FOR_MADE = 2
"""A made example takes at most this part of what the model leaves: code may lie there as well."""


def example_of(
    artifact: Artifact, request: Request, mode: str, needed: Mapping[Role, int]
) -> Example:
    """Execute the example of a request here, and see whether it has room beside the model.

    E468 for inputs that have none, E711 to E713 for those that do not fit the network.
    """
    example = executed(artifact, request.inputs or request.made)
    size = len(example.inputs) + len(example.outputs)
    memory, room = _room_beside(request.board, mode, needed)
    if request.inputs and size > room:
        raise fail(
            "E468",
            f"{memory} of {request.board.name} must hold an example of {size} bytes beside the "
            f"model, and has {room} left",
            help="give fewer inferences with --input",
        )
    return example if request.inputs or PART_FOR_MADE * size <= room else NO_EXAMPLE


def _room_beside(board: Board, mode: str, needed: Mapping[Role, int]) -> tuple[str, int]:
    """Return the memory of the model, and the bytes that are left there."""
    layout = board.mode(mode)
    memory = board.memory(Role.MODEL, layout)
    there = (
        size for role, size in needed.items() if board.memory(role, layout).name == memory.name
    )
    return memory.name, memory.size_bytes - sum(there)


def executed(artifact: Artifact, inputs: Sequence[Array]) -> Example:
    """Execute an example here, its state going on as it does on the device; none without inputs.

    E711 to E713 for inputs that do not fit.
    """
    if not inputs:
        return NO_EXAMPLE
    batch = batch_of(inputs, artifact.inputs)
    session = artifact.session()
    given: list[bytes] = []
    expected: list[bytes] = []
    for place in range(batch.size):
        arrays = batch.part(place, place + 1).arrays
        given += [_bytes(array) for array in arrays]
        outputs = session.run(*(array[0] for array in arrays))
        expected += [
            _bytes(array) for array in (outputs if isinstance(outputs, tuple) else (outputs,))
        ]
    return Example(batch.size, b"".join(given), b"".join(expected))


def _bytes(array: Array) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
