"""Parts of a project that builds, whatever runtime executes the model in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from mizzen.escaping import cmake_argument, make_value
from mizzen.files import write_files
from mizzen.package.firmware.sources import firmware_folder

BYTES_PER_LINE = 20
INCLUDES = '#include "board.h"\n#include "model.h"\n\n'


@dataclass(frozen=True, slots=True)
class Example:
    """Inferences whose outputs are known: bytes of all inputs, and of all outputs, in order."""

    inferences: int
    inputs: bytes
    outputs: bytes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a project is for: generated texts of the board, and names for the compiler.

    npu        the board's: ``u55``, ``u65`` or ``u85``
    checkouts  folders of others' sources on the user's disk, by the variable of make that has them
    on_npu     whether something runs on the NPU
    """

    board_config: str
    linker_script: str
    cpu: str
    npu: str
    checkouts: Mapping[str, str] = field(default_factory=dict[str, str])
    on_npu: bool = True


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of a folder of `firmware`, by patterns, and the folder of the project they go to."""

    folder: str
    patterns: tuple[str, ...]
    target: str = ""


NO_EXAMPLE = Example(0, b"", b"")

EXAMPLE = Sources("example", ("*.c", "*.h", "toolchain.cmake"))
NPU = Sources("npu", ("*", "cmsis/*.h"), "npu/")


def surrounding_files(
    sources: Iterable[Sources],
    around: Surroundings,
    lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Return the files of a project that hold nothing of a model.

    lists  what else the settings name: what the model needs of a checkout, by variable
    """
    generated = {
        "model.mk": _make_settings(around, lists),
        "model.cmake": _cmake_settings(around, lists),
        "board/board_config.h": around.board_config,
        "board/board.ld": around.linker_script,
    }
    return copied((EXAMPLE, NPU, *sources)) | {
        path: text.encode() for path, text in generated.items()
    }


def copied(sources: Iterable[Sources]) -> dict[str, bytes]:
    """Return files of `firmware` by their path in the project."""
    root = firmware_folder()
    return {
        source.target + path.relative_to(root / source.folder).as_posix(): path.read_bytes()
        for source in sources
        for pattern in source.patterns
        for path in sorted((root / source.folder).glob(pattern))
        if path.is_file()
    }


def write_project(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files below a folder, and leave alone what is there already, for make to see.

    E201 and E207 where that cannot be.
    """
    wanted = {folder / name: data for name, data in files.items()}
    write_files({path: data for path, data in wanted.items() if not _is_there(path, data)}, folder)


def _is_there(path: Path, data: bytes) -> bool:
    with suppress(OSError):
        return path.is_file() and path.read_bytes() == data
    return False


def header(macros: Mapping[str, str], array: str, model: bytes, example: Example) -> str:
    """Return `model.h`: macros, the model's digest among them, and declarations of byte arrays.

    array  the name of the model's
    """
    digest = ", ".join(f"0x{byte:02x}" for byte in sha256(model).digest())
    values = {
        **macros,
        "MODEL_SHA256": f"{{{digest}}}",
        "EXAMPLE_INFERENCES": str(example.inferences),
    }
    defines = "\n".join(f"#define {name} {value}" for name, value in values.items())
    names = (array, "example_inputs", "example_outputs")
    declared = "\n".join(f"extern const uint8_t {name}[];" for name in names)
    return (
        "/* The model, and an example of what it does: made by Mizzen. */\n"
        f"#ifndef MODEL_H\n#define MODEL_H\n\n#include <stdint.h>\n\n{defines}\n\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{declared}\n\n'
        "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
    )


def example_source(example: Example) -> str:
    """Return `example.c`: what the example's inferences take, and what they must give."""
    return (
        array("example_inputs", example.inputs) + "\n" + _rows("example_outputs", example.outputs)
    )


def array(name: str, data: bytes) -> str:
    """Return a source in C with bytes in the model's memory, aligned to 16 bytes."""
    return INCLUDES + _rows(name, data)


def _rows(name: str, data: bytes) -> str:
    held = data or bytes(1)
    lines = (
        "    " + "".join(f"{byte}," for byte in held[at : at + BYTES_PER_LINE])
        for at in range(0, len(held), BYTES_PER_LINE)
    )
    body = "\n".join(lines)
    return f"BOARD_MODEL const uint8_t {name}[{len(held)}] = {{\n{body}\n}};\n"


def _make_settings(around: Surroundings, lists: Mapping[str, Sequence[str]]) -> str:
    product = f"ETHOS{around.npu.upper()}"
    lines = [f"CPU ?= {make_value(around.cpu)}", f"NPU := {around.npu}", f"PRODUCT := {product}"]
    lines.append(f"ON_NPU := {'yes' if around.on_npu else ''}")
    lines += [
        f"{name} := " + " \\\n    ".join(map(make_value, paths)) for name, paths in lists.items()
    ]
    lines += [f"{name} ?= {make_value(path)}" for name, path in around.checkouts.items()]
    return "\n".join(lines) + "\n"


def _cmake_settings(around: Surroundings, lists: Mapping[str, Sequence[str]]) -> str:
    variables = {
        "CPU": around.cpu,
        "NPU": around.npu,
        "ON_NPU": "ON" if around.on_npu else "OFF",
        **{name: ";".join(paths) for name, paths in lists.items()},
    }
    variables |= around.checkouts
    return "".join(
        f"set(MODEL_{name} {cmake_argument(value)})\n" for name, value in variables.items()
    )
