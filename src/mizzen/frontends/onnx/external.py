"""Weights that lie in files beside the network's: read from its folder, and from nowhere else.

A file's name of such data is a stranger's text. It is taken apart by the rules of every system, and
opened step by step from the folder, no link followed anywhere, so that what is checked is what is
read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mizzen.diagnostics import MizzenError, Origin, fail

MOST_BYTES = 1 << 30
"""Of all tensors together: no device with such an NPU has as much."""
_HELP = "export the network with its weights in one file, or put the file of weights beside it"
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(eq=False)
class Beside:
    """What lies in the folder of a network; `folder` is None where the network came as bytes."""

    folder: Path | None
    _read: dict[tuple[str, int, int], bytes] = field(default_factory=dict[Any, bytes])
    _size: int = 0

    def tensor(self, entries: Mapping[str, str], size: int, origin: Origin) -> bytes:
        """Read a tensor's bytes; `size` is what its type and shape take.

        Raises E191 where the place is not inside of the folder, or does not hold so many bytes,
        E192 where all tensors take too many.
        """
        name = entries.get("location", "")
        parts = _parts(name, origin)
        if self.folder is None:
            message = f'weights in "{name}" must lie beside a file, and the network came without'
            raise _wrong(
                origin, message, "give the network's path, or keep its weights in one file"
            )
        offset = _number(entries, "offset", 0, origin)
        length = _number(entries, "length", size, origin)
        if length != size:
            message = f'"{name}" must hold the {size} bytes of the tensor, and says {length}'
            raise _wrong(origin, message)
        place = (name, offset, size)
        if place not in self._read:
            self._size += size
            if self._size > MOST_BYTES:
                message = f"weights beside the network must take at most {MOST_BYTES:,} bytes"
                raise fail("E192", f"{message}, and take more", origin=origin)
            self._read[place] = _bytes_of(self.folder, parts, name, offset, size, origin)
        return self._read[place]


def _parts(name: str, origin: Origin) -> list[str]:
    """Take a relative path apart; nothing of it may lead outside of the folder."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    is_outside = name.startswith(("/", "\\")) or ".." in parts or ":" in name or "\0" in name
    if is_outside or not parts:
        raise _wrong(origin, f'weights must lie in the folder of the network, and lie in "{name}"')
    return parts


def _number(entries: Mapping[str, str], key: str, default: int, origin: Origin) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise _wrong(
            origin, f'{key} of external data must be a count of bytes, and is "{text[:40]}"'
        )
    return int(text)


def _bytes_of(
    folder: Path, parts: list[str], name: str, offset: int, size: int, origin: Origin
) -> bytes:
    try:
        file = _opened(folder, parts, name, origin)
    except (OSError, ValueError):
        raise _wrong(origin, f'"{name}" must be a file that can be read, and is none') from None
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _wrong(origin, f'"{name}" must be a plain file, and is something else')
        if offset + size > status.st_size:
            raise _wrong(
                origin,
                f'"{name}" must have bytes {offset} to {offset + size}, and has {status.st_size}',
            )
        stream.seek(offset)
        data = stream.read(size)
    if len(data) != size:
        raise _wrong(origin, f'"{name}" must have {size} bytes at {offset}, and has fewer')
    return data


def _opened(folder: Path, parts: list[str], name: str, origin: Origin) -> int:
    """Open a file below a folder, each part from the one before it where the system can."""
    if os.open not in os.supports_dir_fd:
        return _opened_by_path(folder, parts, name, origin)
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            _no_link(os.stat(part, dir_fd=at, follow_symlinks=False), name, origin)
            inner = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        status = os.stat(parts[-1], dir_fd=at, follow_symlinks=False)
        _no_link(status, name, origin)
        _plain(status, name, origin)
        return os.open(parts[-1], _FLAGS, dir_fd=at)
    finally:
        os.close(at)


def _opened_by_path(folder: Path, parts: list[str], name: str, origin: Origin) -> int:
    path = folder
    for part in parts:
        path = path / part
        _no_link(path.lstat(), name, origin)
    _plain(path.lstat(), name, origin)
    return os.open(path, _FLAGS)


def _no_link(status: os.stat_result, name: str, origin: Origin) -> None:
    is_junction = bool(getattr(status, "st_reparse_tag", 0))
    if stat.S_ISLNK(status.st_mode) or is_junction:
        raise _wrong(origin, f'no part of "{name}" may be a link, and one is')


def _plain(status: os.stat_result, name: str, origin: Origin) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _wrong(origin, f'"{name}" must be a plain file, and is something else')


def _wrong(origin: Origin, message: str, help: str = _HELP) -> MizzenError:
    return fail("E191", message, origin=origin, help=help)
