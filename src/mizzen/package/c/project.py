"""The files of a project that builds: the container as C, what it needs of the runtime, a board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mizzen.diagnostics import fail
from mizzen.package.c.firmware import firmware_folder
from mizzen.package.c.kernel_rows import kernel_table, sources_of
from mizzen.package.c.reader import decode
from mizzen.package.device import KernelCall
from mizzen.package.device.program import DeviceProgram

BYTES_PER_LINE = 20
LEAST_MEMORY_BYTES = 16
"""C has no arrays without elements."""

RUNTIME = ("*.c", "*.h", "kernels/*.h")
BOARD = ("*.c", "*.h")
PROJECT = ("main.c", "Makefile", "CMakeLists.txt", "toolchain.cmake", "npu/*.c", "npu/cmsis/*.h")


@dataclass(frozen=True, slots=True)
class Example:
    """Inferences whose outputs are known: bytes of all inputs, and of all outputs, in order."""

    inferences: int
    inputs: bytes
    outputs: bytes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the project is for: generated texts of the board, and names for the compiler.

    npu  ``u55``, ``u65`` or ``u85``
    """

    board_config: str
    linker_script: str
    cpu: str
    npu: str


NO_EXAMPLE = Example(0, b"", b"")


def kernels_of(program: DeviceProgram) -> Sequence[str]:
    """Return the names of the kernels that a lowered program calls, each once."""
    calls = (call.operator for call in program.calls if isinstance(call, KernelCall))
    return list(dict.fromkeys(calls))


def project_files(
    container: bytes, program: DeviceProgram, around: Surroundings, example: Example = NO_EXAMPLE
) -> Mapping[str, bytes]:
    """Return the files of a project by their path in its folder."""
    kernels = kernels_of(program)
    generated = {
        "model.h": _model_header(container, example),
        "model.c": _model_source(container),
        "example.c": _example_source(example),
    }
    return surrounding_files(kernels, around) | {
        path: text.encode() for path, text in generated.items()
    }


def surrounding_files(kernels: Sequence[str], around: Surroundings) -> dict[str, bytes]:
    """Return the files of a project that hold nothing of a model, with some kernels linked."""
    generated = {
        "kernels.c": kernel_table(kernels),
        "model.mk": _settings(around),
        "board/board_config.h": around.board_config,
        "board/board.ld": around.linker_script,
    }
    return dict(_copied(kernels)) | {path: text.encode() for path, text in generated.items()}


def write_project(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files below a folder. E467 where that cannot be."""
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise fail("E467", f"{path} must be a file that can be written: {reason}") from None


def _copied(kernels: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    source = firmware_folder()
    kept = [*RUNTIME, *(f"kernels/{name}" for name in sources_of(kernels))]
    for folder, patterns, target in (
        ("runtime", kept, "runtime/"),
        ("board", BOARD, "board/"),
        ("project", PROJECT, ""),
    ):
        for pattern in patterns:
            for path in sorted((source / folder).glob(pattern)):
                yield target + path.relative_to(source / folder).as_posix(), path.read_bytes()


def _settings(around: Surroundings) -> str:
    product = f"ETHOS{around.npu.upper()}"
    return f"CPU ?= {around.cpu}\nNPU := {around.npu}\nPRODUCT := {product}\n"


def _model_header(container: bytes, example: Example) -> str:
    header = decode(container).header
    return (
        "/* The model, and an example of what it does: made by Mizzen. */\n"
        "#ifndef MODEL_H\n#define MODEL_H\n\n#include <stdint.h>\n\n"
        f"#define MODEL_BYTES {len(container)}u\n"
        f"#define MODEL_ARENA_BYTES {max(header['arena_bytes'], LEAST_MEMORY_BYTES)}u\n"
        f"#define MODEL_FAST_BYTES {max(header['fast_bytes'], LEAST_MEMORY_BYTES)}u\n"
        f"#define EXAMPLE_INFERENCES {example.inferences}\n\n"
        "extern const uint8_t model_container[];\n"
        "extern const uint8_t example_inputs[];\n"
        "extern const uint8_t example_outputs[];\n\n#endif\n"
    )


def _model_source(container: bytes) -> str:
    return f'#include "board.h"\n#include "model.h"\n\n{_array("model_container", container)}'


def _example_source(example: Example) -> str:
    arrays = (_array("example_inputs", example.inputs), _array("example_outputs", example.outputs))
    return '#include "board.h"\n#include "model.h"\n\n' + "\n".join(arrays)


def _array(name: str, data: bytes) -> str:
    held = data or bytes(1)
    lines = (
        "    " + "".join(f"{byte}," for byte in held[at : at + BYTES_PER_LINE])
        for at in range(0, len(held), BYTES_PER_LINE)
    )
    body = "\n".join(lines)
    return f"BOARD_MODEL const uint8_t {name}[{len(held)}] = {{\n{body}\n}};\n"
