"""Firmware that runs an artifact, without a compiler: one that is built already, with the artifact.

The firmware is the project's own, with every kernel that the runtime has. It takes model and
example from the start of the model's memory, where they are put as a segment of the ELF file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from mizzen.boards import Board, Role, board_header, linker_script
from mizzen.diagnostics import fail
from mizzen.export.c.container import c_container
from mizzen.export.c.project import container_needs
from mizzen.export.project import executed
from mizzen.package.c.kernel_rows import KERNELS
from mizzen.package.c.project import runtime_files
from mizzen.package.firmware import Example, Surroundings, firmware_folder

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

ARENA_BYTES = 1536 << 10
FAST_BYTES = 448 << 10
"""What the firmware keeps of a board's SRAM of 2 MiB for the arena and the fast memory."""

ALIGNMENT_BYTES = 16
LARGEST = {Role.ARENA: ARENA_BYTES, Role.FAST: FAST_BYTES}

BUILT = {
    "corstone300": ("ethos-u55", "ethos-u65", "ethos-u85"),
    "corstone310": ("ethos-u55", "ethos-u65"),
    "corstone320": ("ethos-u85",),
}
"""Boards to products for which there is firmware."""

CPU = "cortex-m33"
"""What the firmware is built for, which a Cortex-M55 executes too."""

NOTHING = b"typedef int nothing;\n"
"""The example is after the head, and C has no empty sources."""

_HEAD = struct.Struct("<5I")
_ELF = struct.Struct("<16sHHIIIIIHHHHHH")
_SEGMENT = struct.Struct("<8I")
_LOADED = 1
_READ = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes at an address."""

    address: int
    data: bytes


def runner(artifact: Artifact, board: Board, inputs: Sequence[npt.NDArray[Any]]) -> bytes:
    """Return firmware, an ELF file, that runs an artifact on inputs and compares the outputs.

    inputs  a batch of N is N inferences, one after the other, with state that goes on

    E482 for a board or an NPU that there is no such firmware for, E468 for memory that it has not,
    E450 to E466 as `c_container`, E711 to E713 for inputs that do not fit.
    """
    product = product_of(artifact, board)
    container = c_container(artifact).data
    needed = container_needs(container)
    for role, most in LARGEST.items():
        if needed[role] > most:
            raise fail(
                "E468",
                f"the {role.value} of firmware that is built already is {most} bytes, and the "
                f"network needs {needed[role]}",
                help="`mizzen export` makes a project of the size that it needs",
            )
    image = image_of(container, executed(artifact, inputs))
    base = board.memory(Role.MODEL).base
    built = (firmware_folder() / "runner" / name_of(board.name, product)).read_bytes()
    kept = [segment for segment in _segments(built) if segment.address != base]
    return _elf(built, [*kept, Segment(base, image)])


def name_of(board: str, product: str) -> str:
    """Return the name of the firmware's file for a board and a product."""
    return f"{board}-{product}.elf"


def product_of(artifact: Artifact, board: Board) -> str:
    """Return the product that an artifact is for. E415 and E482 if there is no firmware for it."""
    known = BUILT.get(board.name, ())
    accelerator = artifact.accelerator
    product = known[0] if accelerator is None and known else ""
    if accelerator is not None:
        product = board.ports_of(accelerator).product
    if product not in known:
        own = "" if board.sdk is None else " --bare-metal"
        raise fail(
            "E482",
            f"firmware that is built already is for {', '.join(BUILT)}, not for {board.name} with "
            f"{product or 'no NPU'}",
            help=f"`mizzen export --to c --board {board.name}{own}` makes a project; "
            "`mizzen emulate` runs the firmware that is built of it",
        )
    return product


def image_of(container: bytes, example: Example) -> bytes:
    """Return the bytes at the start of the model's memory: head, container, example."""
    parts = (container, example.inputs, example.outputs)
    places: list[int] = []
    data = bytearray(_aligned(_HEAD.size))
    for part in parts:
        places.append(len(data))
        data += part + bytes(_aligned(len(part)) - len(part))
    head = _HEAD.pack(places[0], len(container), places[1], places[2], example.inferences)
    data[: _HEAD.size] = head
    return bytes(data)


def runner_project(board: Board, product: str) -> Mapping[str, bytes]:
    """Return the sources of the firmware by their path in a folder, where `make` builds it."""
    source = firmware_folder() / "runner"
    accelerators = {"ethos-u55": "ethos-u55-128", "ethos-u65": "ethos-u65-256"}
    around = Surroundings(
        board_header(board, accelerators.get(product, "ethos-u85-256")),
        linker_script(board),
        CPU,
        product.removeprefix("ethos-"),
    )
    own = {name: (source / name).read_bytes() for name in ("model.h", "model.c")}
    sizes = f"#define RUNNER_ARENA_BYTES {ARENA_BYTES}u\n#define RUNNER_FAST_BYTES {FAST_BYTES}u\n"
    generated = {"runner_sizes.h": sizes.encode(), "example.c": NOTHING}
    return {**runtime_files(list(KERNELS), around), **own, **generated}


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def _segments(elf: bytes) -> Iterator[Segment]:
    """Return the segments that an ELF file of ours loads."""
    fields = _ELF.unpack_from(elf)
    start, size, count = fields[5], fields[9], fields[10]
    for index in range(count):
        kind, offset, _, address, held, *_ = _SEGMENT.unpack_from(elf, start + index * size)
        if kind == _LOADED and held:
            yield Segment(address, elf[offset : offset + held])


def _elf(like: bytes, segments: Sequence[Segment]) -> bytes:
    """Return an ELF file with the head of another one, its entry too, and these segments."""
    fields = list(_ELF.unpack_from(like))
    fields[5], fields[6] = _ELF.size, 0
    fields[9], fields[10] = _SEGMENT.size, len(segments)
    fields[11:14] = 0, 0, 0
    at = _ELF.size + len(segments) * _SEGMENT.size
    heads, held = bytearray(), bytearray()
    for segment in segments:
        place, size = at + len(held), len(segment.data)
        heads += _SEGMENT.pack(
            _LOADED, place, segment.address, segment.address, size, size, _READ, 1
        )
        held += segment.data
    return _ELF.pack(*fields) + bytes(heads) + bytes(held)
