"""Write files whole or not at all: beside their places, flushed, then renamed over.

Until all files of a group are ready, none of the older ones is touched, so that a full disk or a
signal leaves those whole. The renames follow one another with signals held. A link keeps its name:
what it points to is replaced. An older file keeps its mode and owner; another hard link to it keeps
the older contents. What is no file, `/dev/stdout` or a pipe, is written to as it is.

Ref: rename(2), fsync(2).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mizzen.diagnostics import fail
from mizzen.files.leftovers import keep, new_name, take_away
from mizzen.files.signals import held

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
NO_FLUSH = frozenset((errno.EINVAL, errno.ENOTSUP, errno.ENOSYS))
"""What a file system says that knows no flushing. Ref: fsync(2)."""
STANDARD_STREAMS = (1, 2)


@dataclass(frozen=True, slots=True)
class _Place:
    """A file to write: the user's name for it, where that leads, and what is there now.

    stream  an open descriptor of this process that is the same file
    """

    name: Path
    target: Path
    before: os.stat_result | None
    stream: int | None

    @property
    def is_file(self) -> bool:
        """Whether it can be replaced: an ordinary file, or none yet."""
        return self.stream is None and (self.before is None or stat.S_ISREG(self.before.st_mode))


def write_file(path: Path, data: bytes) -> None:
    """Write one file into a folder that is there. Raises as `write_files`."""
    write_files({path: data})


def write_files(files: Mapping[Path, bytes], within: Path | None = None) -> None:
    """Write files that belong together; raise what says why one cannot be.

    within  a folder of ours, which is made with those in it; other folders must be there

    E207 with the file and the bytes that are needed where there is no room, E201 for a place that
    no file can have: the older ones are whole then, and nothing else is left.
    """
    total = sum(map(len, files.values()))
    folders: list[Path] = []
    made: list[tuple[Path, _Place]] = []
    streams: list[tuple[_Place, bytes]] = []
    try:
        for path, data in files.items():
            with _told(path, len(data), total):
                place = _place(path)
                if not place.is_file:
                    streams.append((place, data))
                    continue
                if within is not None:
                    _make_folders(path.parent, within, folders)
                made.append((new_name(place.target.parent), place))
                _prepare(made[-1][0], place, data)
        for place, data in streams:
            with _told(place.name, len(data), total):
                _stream(place, data)
        with held():
            _replace(made, total)
    except BaseException:
        for temporary, _ in made:
            take_away(temporary)
        for folder in reversed(folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _place(path: Path) -> _Place:
    try:
        before = path.stat()
    except FileNotFoundError:
        return _Place(path, Path(os.path.realpath(path)), None, None)
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    stream = next((each for each in STANDARD_STREAMS if _is_open_on(each, before)), None)
    return _Place(path, Path(os.path.realpath(path)), before, stream)


def _is_open_on(descriptor: int, seen: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), seen)
    return False


def _make_folders(folder: Path, within: Path, made: list[Path]) -> None:
    """Make a folder within another, and those on the way to both; list what was made."""
    if not folder.is_relative_to(within):
        return
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for parent in reversed(missing):
        with contextlib.suppress(FileExistsError):
            parent.mkdir()
            made.append(parent)


def _prepare(temporary: Path, place: _Place, data: bytes) -> None:
    """Write a file beside its place, with the mode and owner that the older one has."""
    if place.before is not None and not _may_write(place.target):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place.name)
    with _new_file(temporary, 0o666 if place.before is None else 0o600) as handle:
        _write_all(handle, data)
        if place.before is not None:
            _give(handle, place.before)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in NO_FLUSH:
                raise


def _may_write(path: Path) -> bool:
    """Whether an older file may be written to; renaming over it asks for its folder only."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


@contextmanager
def _new_file(path: Path, mode: int) -> Generator[int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, mode)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _give(handle: int, before: os.stat_result) -> None:
    """Give a file the owner and the mode of an older one, as far as that is allowed."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(handle, before.st_uid, before.st_gid)
        with contextlib.suppress(OSError):
            os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _stream(place: _Place, data: bytes) -> None:
    """Write to what is no file: a device, a pipe, or what this process has open already."""
    if place.stream is not None:
        _write_all(place.stream, data)
        return
    with open(place.name, "wb", buffering=0) as file:
        _write_all(file.fileno(), data)


def _replace(made: list[tuple[Path, _Place]], total: int) -> None:
    """Rename all over their places."""
    while made:
        temporary, place = made[0]
        with _told(place.name, temporary.stat().st_size, total):
            temporary.replace(place.target)
        keep(temporary)
        made.pop(0)


@contextmanager
def _told(path: Path, size: int, total: int) -> Generator[None]:
    """Say what the system refuses: E207 with the bytes that a file needs, E201 for its place."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        if not isinstance(error, OSError) or error.errno not in NO_ROOM:
            raise fail("E201", f"{path} must be a file that can be written: {reason}") from None
        others = f" of the {total:,} of all files" if total > size else ""
        raise fail(
            "E207",
            f"{path} must have room for {size:,} bytes{others}: {reason}",
            help="make room there, or choose another place",
        ) from None
