"""What is temporary, noted before it is made, so that it never outlives its process for long.

A process that is killed takes nothing away. So each one lists what it is about to make, in a file
of its own in the folder for temporary files, locked while the process lives. A list that can be
locked is of a process that is gone: the next start takes away what is in it, wherever that lies.
A lock ends with its process however that ends, and counts in other containers too, where process
numbers are others. A list may name only what is called as `new_name` calls it.

Ref: flock(2).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from mizzen.files.signals import held
from mizzen.platforms.locks import HAS_LOCKS, locked

LIST_START = "mizzen-list-"
LISTED = re.compile(r"\.mizzen-\d+-[0-9a-f]{16}")
LARGEST_LIST_BYTES = 1 << 20
PRIVATE = 0o077
"""Rights that others must not have in a list."""


def temporary_place() -> Path:
    """Return the folder for temporary files, which `tempfile` uses from then on.

    By itself that writes a file to try each, which a signal may leave there.
    """
    if tempfile.tempdir is None:
        named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        usual = ("/tmp", "/var/tmp", "/usr/tmp") if os.name == "posix" else ()
        places = (os.path.abspath(place) for place in (*named, *usual, os.curdir) if place)
        usable = (place for place in places if os.access(place, os.W_OK | os.X_OK))
        tempfile.tempdir = next((place for place in usable if os.path.isdir(place)), None)
    return Path(tempfile.gettempdir())


class _Temporary:
    """What this process has that is temporary, and its list."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.paths: set[Path] = set()
        self._list: tuple[int, Path] | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)

    def add(self, path: Path) -> None:
        """Note what is about to be made. Without locks, or a folder for lists, go on without.

        A list without a lock would be taken for one of a process that is gone.
        """
        with held(), self.lock, contextlib.suppress(OSError):
            self.paths.add(path)
            if not HAS_LOCKS:
                return
            if self._list is None:
                self._list = _new_list()
            os.write(self._list[0], os.fsencode(path) + b"\0")

    def drop(self, path: Path) -> None:
        """Forget what is there no more; the list goes with the last."""
        with held(), self.lock:
            self.paths.discard(path)
            if self.paths or self._list is None:
                return
            handle, place = self._list
            self._list = None
            os.close(handle)
            place.unlink(missing_ok=True)

    def _begin_in_child(self) -> None:
        """Start anew after a fork: what there is belongs to the parent, and so does its list."""
        self.lock = threading.RLock()
        self.paths = set()
        if self._list is not None:
            os.close(self._list[0])
            self._list = None


_temporary = _Temporary()


def new_name(folder: Path) -> Path:
    """Return the name for something temporary in a folder, which is noted before it is there."""
    path = folder.absolute() / f".mizzen-{os.getpid()}-{os.urandom(8).hex()}"
    _temporary.add(path)
    return path


def take_away(path: Path) -> None:
    """Remove what `new_name` named, if it was made, and forget it."""
    _remove(path)
    _temporary.drop(path)


def keep(path: Path) -> None:
    """Forget what `new_name` named: it has another name now."""
    _temporary.drop(path)


def take_all_away() -> None:
    """Remove everything temporary of this process, which is about to end without more ado."""
    for path in list(_temporary.paths):
        take_away(path)


@contextmanager
def temporary_folder(place: Path | None = None) -> Generator[Path]:
    """Make a folder for as long as the block runs, by default where temporary files are."""
    path = new_name(place or temporary_place())
    try:
        path.mkdir(mode=0o700)
        yield path
    finally:
        take_away(path)


def take_leftovers_away() -> None:
    """Remove what processes of this user have left that are gone."""
    if not HAS_LOCKS:
        return
    with contextlib.suppress(OSError):
        for path in _lists(temporary_place()):
            with contextlib.suppress(OSError):  # gone meanwhile, or not ours
                _heed(path)


def _lists(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.name.startswith(LIST_START))


def _heed(path: Path) -> None:
    """Remove what a list names, and the list, unless its process lives."""
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_nlink != 1:
            return
        if seen.st_mode & PRIVATE or not locked(handle):
            return
        for name in os.read(handle, LARGEST_LIST_BYTES).split(b"\0"):
            left = Path(os.fsdecode(name))
            if left.is_absolute() and LISTED.fullmatch(left.name):
                _remove(left)
        path.unlink()
    finally:
        os.close(handle)


def _new_list() -> tuple[int, Path]:
    """Make this process's list and lock it. Another process may take it for one that was left."""
    take_leftovers_away()
    while True:
        path = Path(temporary_place(), f"{LIST_START}{os.getpid()}-{os.urandom(8).hex()}")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        if locked(handle) and os.fstat(handle).st_nlink == 1:
            return handle, path
        os.close(handle)


def _remove(path: Path) -> None:
    """Remove a file or folder if it is there and can be removed."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
