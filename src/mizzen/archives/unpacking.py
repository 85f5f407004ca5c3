"""Unpack ZIP archives within a bound.

Ref: PKWARE, APPNOTE.TXT, 4.4 (methods, sizes).
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO

MOST_BYTES = 1 << 30
"""Most that an archive may unpack to: no network for these NPUs comes near."""
FREE_BYTES = 1 << 27
BYTES_PER_BYTE = 32
"""What an archive may unpack to is bounded by its own size, too: these times it, beside
`FREE_BYTES`. Weights hardly shrink; a block of zeros does a thousandfold, and is then short."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods whose memory does not depend on what the archive says."""

_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What `zipfile` raises for damaged, encrypted or unsupported archives."""


class ArchiveError(Exception):
    """Says what is wrong with a file, in words that follow its name."""


def largest_unpacked(data: bytes) -> int:
    """Return how many bytes an archive may unpack to."""
    return min(MOST_BYTES, FREE_BYTES + BYTES_PER_BYTE * len(data))


def unpacked(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive by name.

    Raises `ArchiveError` for a file that is not one, is damaged, encrypted or compressed by a
    method other than `METHODS`, that names a member twice or unpacks to too much.
    """
    return dict(_members(io.BytesIO(data), largest_unpacked(data)))


def data_members(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Give the members of an archive of data, of any size, one by one with their names.

    It may unpack to `FREE_BYTES`, and `BYTES_PER_BYTE` for each of its own. Raises as `unpacked`.
    """
    size = file.seek(0, io.SEEK_END)
    return _members(file, FREE_BYTES + BYTES_PER_BYTE * size)


def _members(file: BinaryIO, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _require_bounds(members, most_bytes)
            for member in members:
                yield member.filename, _contents(archive, member)
    except _ERRORS as error:
        raise ArchiveError(f"cannot be unpacked: {error}") from error


def member_names(data: bytes) -> frozenset[str]:
    """Return the names of an archive's members; `ArchiveError` for a file that is not one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return frozenset(archive.namelist())
    except _ERRORS as error:
        raise ArchiveError(f"cannot be unpacked: {error}") from error


def packed(members: Mapping[str, bytes]) -> bytes:
    """Return an archive of members, stored as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, contents in members.items():
            archive.writestr(zipfile.ZipInfo(name), contents)
    return file.getvalue()


def _require_bounds(members: list[zipfile.ZipInfo], most_bytes: int) -> None:
    total = sum(member.file_size for member in members)
    if total > most_bytes:
        raise ArchiveError(f"must unpack to at most {most_bytes} bytes, not {total}")
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise ArchiveError(f"must name each of {len(members)} members once, not {len(names)}")
    for member in members:
        if member.compress_type not in METHODS:
            raise ArchiveError(f"must be stored or deflated, not method {member.compress_type}")


def _contents(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member, of which no more is unpacked than it declares; one byte more ends it."""
    with archive.open(member) as stream:
        contents = stream.read(member.file_size + 1)
    if len(contents) != member.file_size:
        raise ArchiveError(
            f"must have {member.file_size} bytes in {member.filename!r}, not {len(contents)}"
        )
    return contents
