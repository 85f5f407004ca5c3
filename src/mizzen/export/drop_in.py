"""Sources for the vendor's software of a board: a folder to copy, and a page that says where to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from mizzen.boards import Sdk
from mizzen.export.external import External
from mizzen.export.project import Project, Request
from mizzen.package.firmware import Sources, copied

FOLDER = "onto_board"
"""The folder that goes into a project of the vendor's software."""

OF_RUNTIME = "mizzen_npu.h"
"""A file by which Mizzen's own runtime is known."""

RENAMED = {
    "board.h": "mizzen_board.h",
    "board_config.h": "mizzen_board_config.h",
    "main.c": "mizzen_example.c",
    "driver.c": "mizzen_driver.c",
}
"""Sources whose names the vendor's software has itself."""

ENDINGS = frozenset({".c", ".cc", ".h"})
OF_FIRMWARE = frozenset(
    {
        "board.c", "startup.c", "memory.c", "syscalls.c", "console.cc", "ethosu.c", "registers.c",
        "npu_registers.c", "npu_registers.h", "cmsis_compiler.h", "flatbuffers_version.h",
        "instrumentation.h",
    }
)  # fmt: skip
"""What only a firmware of its own has: start-up, console and C library, the NPU by its registers,
and headers of others that a checkout lacks."""


def joined(project: Project, request: Request) -> Project:
    """Return a project as its board takes it: as it is, or as sources for the vendor's software."""
    sdk = request.sdk
    if sdk is None:
        return project
    return replace(project, files=_flat(project, sdk, request.external), missing=())


def _flat(project: Project, sdk: Sdk, external: External | None) -> dict[str, bytes]:
    """Return the sources in one flat folder: not every build system looks into further ones.

    A model that is written to flash by itself is a file beside the folder.
    """
    files: dict[str, bytes] = {}
    for path, data in project.files.items():
        name = PurePosixPath(path).name
        if PurePosixPath(path).suffix not in ENDINGS or name in OF_FIRMWARE:
            continue
        assert name not in files, f"two sources are called {name}"
        files[name] = data
    own = ("*.c",) if OF_RUNTIME in files else ("sdk.c",)
    files |= copied((Sources("sdk", own),))
    files = {RENAMED.get(name, name): _renamed(data) for name, data in files.items()}
    beside: dict[str, bytes] = {}
    if external is not None:
        name = external.apart.file_name
        beside[name] = project.files[name]
    elif sdk.model_address is not None:
        del files["model.c"]
        beside["model.bin"] = project.model
    return {f"{FOLDER}/{name}": data for name, data in files.items()} | beside


def _renamed(data: bytes) -> bytes:
    """Return a source that includes headers by their new names."""
    for name, other in RENAMED.items():
        data = data.replace(f'"{name}"'.encode(), f'"{other}"'.encode())
    return data
