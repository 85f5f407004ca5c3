"""A NumPy archive (`.npz`) from a user, read without trusting anything in it.

Members are unpacked up to a bound, headers are matched rather than evaluated, sizes are checked
before arrays are made, and object arrays go through `objects`, which executes no pickle.

Ref: NumPy, `numpy.lib.format` (the header of a member).
"""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.targets.ethos_u.vela_raw.objects import Entry, ObjectArrayError, read_entries

MAX_ARCHIVE_BYTES = 1 << 30
"""Most bytes that an archive may unpack to: no network for these NPUs comes near."""

_MAGICS = (b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00")
_HEADER_AT = 10
"""Magic and version take 8 bytes, the length 2 or, in version 2, 4, which the search skips."""

_HEADER = re.compile(
    rb".{0,2}?\{'descr': '(?P<type>[^']*)', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n",
    re.DOTALL,
)
_NUMBERS_OR_TEXT = re.compile(r"[<|]([iu][1248]|f[248]|b1|S\d{1,9}|U\d{1,4})")
_OBJECTS = "|O"

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What `zipfile` raises for damaged, encrypted or unsupported archives."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One array: its type in NumPy's letters, its shape, and its elements' bytes."""

    type: str
    shape: tuple[int, ...]
    contents: bytes


@dataclass(frozen=True, slots=True)
class Archive:
    """The arrays of an archive by key, read on demand. `name` is what diagnostics call it."""

    name: str
    members: Mapping[str, bytes]

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def error(self, code: str, message: str) -> MizzenError:
        """Make an error about this archive."""
        return fail(code, message, origin=Origin(model=self.name))

    def array(self, key: str) -> npt.NDArray[np.generic]:
        """Return an array of numbers or text, a view of the archive; E151, E152 if it is not."""
        return self._array(key, self._member(key))

    def data(self, key: str) -> npt.NDArray[np.uint8]:
        """Return an array's bytes, uint8 [bytes]; Vela holds data as uint8 or one byte string."""
        member = self._member(key)
        self._array(key, member)
        return np.frombuffer(member.contents, np.uint8)

    def integers(self, key: str) -> npt.NDArray[np.int64]:
        """Return an array of integers; an empty one may be of any type. E153 if it is not one."""
        array = self.array(key)
        if array.size and (array.dtype.kind not in "iu" or array.dtype == np.uint64):
            raise self.error("E153", f"{key} must hold signed integers, not {array.dtype}")
        return np.zeros(array.shape, np.int64) if not array.size else array.astype(np.int64)

    def integer(self, key: str) -> int:
        """Return a single integer; E153 if it is not one."""
        array = self.integers(key)
        if array.size != 1:
            raise self.error("E153", f"{key} must be one integer, not {array.size}")
        return int(array.reshape(-1)[0])

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; E153 if it is not one."""
        array = self.array(key)
        if array.dtype.kind != "U" or array.ndim != 1:
            raise self.error("E153", f"{key} must be a list of texts, not {array.dtype}")
        try:
            texts = [str(text) for text in array]
        except ValueError:
            texts = ["\0"]
        if not all(text.isprintable() for text in texts):
            raise self.error("E153", f"{key} must be a list of texts, but has other characters")
        return texts

    def entries(self, key: str) -> list[Entry]:
        """Return the dictionaries of an object array; none for an array of numbers. E155 if bad."""
        member = self._member(key)
        if member.type != _OBJECTS:
            return []
        try:
            return read_entries(member.contents)
        except ObjectArrayError as error:
            message = f"{key} must be dictionaries as Vela writes them, but {error}"
            raise self.error("E155", message) from error

    def _member(self, key: str) -> _Member:
        raw = self.members.get(key)
        if raw is None:
            raise self.error("E151", f"a raw archive must have the array {key}, but has none")
        head = _HEADER.match(raw, _HEADER_AT)
        if raw[:8] not in _MAGICS or head is None or head["fortran"] == b"True":
            message = f"{key} must be a row-major array in NumPy's format, but is damaged"
            raise self.error("E152", message)
        shape = tuple(int(extent) for extent in head["shape"].replace(b",", b" ").split())
        return _Member(head["type"].decode("latin-1"), shape, raw[head.end() :])

    def _array(self, key: str, member: _Member) -> npt.NDArray[np.generic]:
        if not _NUMBERS_OR_TEXT.fullmatch(member.type):
            raise self.error("E152", f"{key} must hold numbers or text, not {member.type!r}")
        dtype = np.dtype(member.type)
        size = dtype.itemsize * math.prod(member.shape)
        if size != len(member.contents):
            message = f"{key} must have {size} bytes for its shape, not {len(member.contents)}"
            raise self.error("E152", message)
        if not size:
            return np.zeros(0, dtype)
        return np.frombuffer(member.contents, dtype).reshape(member.shape)


def open_archive(data: bytes, name: str) -> Archive:
    """Unpack an archive; E150 if it is not one, or unpacks to over `MAX_ARCHIVE_BYTES`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            total = sum(member.file_size for member in archive.infolist())
            if total <= MAX_ARCHIVE_BYTES:
                return Archive(name, _unpack(archive))
    except _ZIP_ERRORS as error:
        message = f"the file must be a NumPy archive (.npz), but cannot be read: {error}"
        raise fail("E150", message, origin=Origin(model=name)) from error
    message = f"a raw archive must unpack to at most {MAX_ARCHIVE_BYTES} bytes, not {total}"
    raise fail("E150", message, origin=Origin(model=name))


def _unpack(archive: zipfile.ZipFile) -> dict[str, bytes]:
    members = archive.infolist()
    return {member.filename.removesuffix(".npy"): archive.read(member) for member in members}


def pack_archive(arrays: Mapping[str, npt.ArrayLike]) -> bytes:
    """Return an uncompressed archive of arrays by key; the same arrays give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array))
    return file.getvalue()
