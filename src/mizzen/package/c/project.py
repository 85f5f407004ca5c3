"""The files of a project of the C runtime: the container as C, what it needs of the runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mizzen.package.c.kernel_rows import kernel_table, sources_of
from mizzen.package.c.reader import decode
from mizzen.package.device import KernelCall
from mizzen.package.device.program import DeviceProgram
from mizzen.package.firmware import (
    NO_EXAMPLE,
    Example,
    Sources,
    Surroundings,
    array,
    example_source,
    header,
    surrounding_files,
)

LEAST_MEMORY_BYTES = 16
"""C has no arrays without elements."""


def kernels_of(program: DeviceProgram) -> Sequence[str]:
    """Return the names of the kernels that a lowered program calls, each once."""
    calls = (call.operator for call in program.calls if isinstance(call, KernelCall))
    return list(dict.fromkeys(calls))


@dataclass(frozen=True, slots=True)
class FileMacros:
    """Where firmware finds a file that lies apart, the bytes there, and what it must be for."""

    address: int
    room_bytes: int
    of: int


@dataclass(frozen=True, slots=True)
class Linked:
    """What of a container is linked where a file has the rest; nothing where that has it all."""

    data: bytes
    file: FileMacros


def project_files(
    container: bytes,
    program: DeviceProgram,
    around: Surroundings,
    example: Example = NO_EXAMPLE,
    linked: Linked | None = None,
) -> Mapping[str, bytes]:
    """Return the files of a project by their path in its folder."""
    held = container if linked is None else linked.data
    generated = {
        "model.h": _model_header(container, example, linked),
        "model.c": array("model_container", held),
        "example.c": example_source(example),
    }
    return runtime_files(kernels_of(program), around) | {
        path: text.encode() for path, text in generated.items()
    }


def runtime_files(kernels: Sequence[str], around: Surroundings) -> dict[str, bytes]:
    """Return the files of a project that hold nothing of a model, with some kernels linked."""
    runtime = ("*.c", "*.h", "kernels/*.h", *(f"kernels/{name}" for name in sources_of(kernels)))
    sources = (
        Sources("runtime", runtime, "runtime/"),
        Sources("board", ("*.c", "*.h"), "board/"),
        Sources("project", ("*.c", "Makefile", "CMakeLists.txt", "npu/*.c")),
    )
    return surrounding_files(sources, around) | {"kernels.c": kernel_table(kernels).encode()}


def _model_header(container: bytes, example: Example, linked: Linked | None) -> str:
    fields = decode(container).header
    macros = {
        "MODEL_BYTES": f"{len(container if linked is None else linked.data)}u",
        "MODEL_ARENA_BYTES": f"{max(fields['arena_bytes'], LEAST_MEMORY_BYTES)}u",
        "MODEL_NPU_CALLS": f"{fields['npu_calls_count']}",
        "MODEL_FAST_BYTES": f"{max(fields['fast_bytes'], LEAST_MEMORY_BYTES)}u",
    }
    held = container if linked is None or not linked.data else linked.data
    return header(macros | dict(_file_macros(linked)), "model_container", held, example)


def _file_macros(linked: Linked | None) -> Iterator[tuple[str, str]]:
    if linked is None:
        return
    yield "MODEL_FILE_ADDRESS", f"{linked.file.address:#010x}u"
    yield "MODEL_FILE_ROOM", f"{linked.file.room_bytes:#x}u"
    if not linked.data:
        yield "MODEL_INTERFACE", f"{linked.file.of:#010x}u"
