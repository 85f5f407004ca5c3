"""The C runtime with all of its kernels as a library of this machine, compiled once.

A compiler of the system makes it, or the one in the package `ziglang`, and it is kept in the user's
cache under a name that is a digest of its sources. A library that others could have changed is
never loaded.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mizzen.diagnostics import MizzenError
from mizzen.files import temporary_folder, write_file
from mizzen.package.c.kernel_rows import KERNELS, kernel_table, sources_of
from mizzen.package.firmware import firmware_folder
from mizzen.platforms.folders import cache_folder, is_private
from mizzen.workers.child import Child

CORE = ("mizzen.c", "arguments.c", "cache.c", "file.c", "status_text.c")
FLAGS = (
    "-std=c99", "-O2", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing",
    "-ffp-contract=off", *(() if sys.platform == "win32" else ("-fPIC",)),
)  # fmt: skip
"""Kernels of real numbers round after each step, so nothing is contracted (DEVIATIONS.md there)."""

COMPILERS = ("cc", "clang", "gcc")
TIME_LIMIT_SECONDS = 900
"""The first use of `ziglang` on Windows compiles its C library too."""

OFF = "MIZZEN_NO_C_KERNELS"
"""An environment variable: set, there is no library, as without a compiler."""


class TensorPlace(ctypes.Structure):
    """Where a tensor is, and its size: mz_library_tensor."""

    _fields_ = (("data", c_void_p), ("size_bytes", c_uint64))


@dataclass(frozen=True, slots=True, eq=False)
class CLibrary:
    """The loaded library: its functions; those that give an int give an mz_status."""

    context_bytes: Callable[[], int]
    open: Callable[..., int]
    input: Callable[..., int]
    output: Callable[..., int]
    invoke: Callable[..., int]
    reset: Callable[..., int]
    status_text: Callable[[int], bytes]


@cache
def c_library() -> CLibrary | None:
    """Return the library, compiled if need be; None where nothing here can compile it."""
    if os.environ.get(OFF):
        return None
    try:
        path = _kept() or _compiled()
        return None if path is None else _loaded(path)
    except (OSError, MizzenError):  # no sources, no room, or no library of this machine
        return None


def _sources() -> Sequence[Path]:
    folder = firmware_folder()
    runtime = folder / "runtime"
    kernels = [runtime / "kernels" / name for name in sources_of(KERNELS)]
    return [*(runtime / name for name in CORE), *kernels, folder / "library" / "library.c"]


def _place() -> Path:
    """Return where the library of these sources is kept."""
    digest = sha256(" ".join((*FLAGS, sys.platform, platform.machine())).encode())
    digest.update(kernel_table(KERNELS).encode())
    headers = sorted(path for path in (firmware_folder() / "runtime").rglob("*.h"))
    for path in (*_sources(), *headers):
        digest.update(path.read_bytes())
    suffix = ".dll" if sys.platform == "win32" else ".so"
    return cache_folder() / f"kernels-{digest.hexdigest()[:32]}{suffix}"


def _kept() -> Path | None:
    place = _place()
    safe = place.is_file() and is_private(place) and is_private(place.parent)
    return place if safe else None


def _compiled() -> Path | None:
    """Compile it, and keep it; None if no compiler is there, or none takes the sources."""
    place = _place()
    for compiler in _compilers():
        with temporary_folder() as folder:
            library = folder / place.name
            if not _compiles(compiler, folder, library):
                continue
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(place.parent):
                return None
            write_file(place, library.read_bytes())
            return _kept()
    return None


def _compilers() -> Iterator[Sequence[str]]:
    found = (shutil.which(name) for name in COMPILERS)
    yield from ([path] for path in found if path is not None)
    if find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", "cc"]


def _compiles(compiler: Sequence[str], folder: Path, library: Path) -> bool:
    table = folder / "kernels.c"
    write_file(table, kernel_table(KERNELS).encode())
    runtime = firmware_folder() / "runtime"
    includes = [f"-I{runtime}", f"-I{runtime / 'kernels'}"]
    sources = [str(path) for path in (*_sources(), table)]
    words = [*compiler, *FLAGS, *includes, *sources, "-o", str(library)]
    try:
        with Child(words, stdin=subprocess.DEVNULL, cwd=folder) as process:
            try:
                process.communicate(timeout=TIME_LIMIT_SECONDS)
            finally:
                process.kill()
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0 and library.is_file()


def _loaded(path: Path) -> CLibrary:
    library = ctypes.CDLL(str(path))
    place = ctypes.POINTER(TensorPlace)

    def function(name: str, result: Any, *arguments: Any) -> Any:
        found = getattr(library, f"mz_library_{name}")
        found.restype, found.argtypes = result, arguments
        return found

    return CLibrary(
        context_bytes=function("context_bytes", c_uint32),
        open=function("open", c_int, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t),
        input=function("input", c_int, c_void_p, c_uint32, place),
        output=function("output", c_int, c_void_p, c_uint32, place),
        invoke=function("invoke", c_int, c_void_p),
        reset=function("reset", c_int, c_void_p),
        status_text=function("status_text", c_char_p, c_int),
    )
