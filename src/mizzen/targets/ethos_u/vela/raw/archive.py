"""A NumPy archive (`.npz`) from a user, read without trusting anything in it.

Members are unpacked within bounds, headers are matched rather than evaluated, sizes are checked
before arrays are made, and object arrays go through `objects`, which executes no pickle.

Ref: NumPy, `numpy.lib.format` (the header of a member).

Object arrays are read without executing the pickle in them. NumPy stores an object array as a
pickle, and loading a pickle runs whatever it names. Vela writes only arrays of dictionaries of
arrays, so a machine for the few operations of such pickles is enough here: it builds plain values,
and where the pickle calls NumPy it keeps the call as data.

Ref: Python standard library, `pickletools` (the pickle operations); NumPy, `ndarray.__reduce__`.
"""

from __future__ import annotations

import io
import math
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from mizzen.archives import ArchiveError, are_characters, unpacked
from mizzen.diagnostics import MizzenError, Origin, fail

_RECONSTRUCT = "_reconstruct"
_GLOBALS = {
    ("numpy.core.multiarray", _RECONSTRUCT),
    ("numpy._core.multiarray", _RECONSTRUCT),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
_NUMBER_TYPES = ("<f4", "<f8", "<i4", "<i8")

Entry = dict[str, str | npt.NDArray[np.generic]]


class ObjectArrayError(Exception):
    """The pickle is not one that Vela writes; the text says why."""


@dataclass(frozen=True, slots=True)
class _Global:
    name: str


@dataclass(slots=True)
class _Call:
    """A call that the pickle asks for, kept as data; `state` is what it would set afterwards."""

    name: str
    arguments: tuple[object, ...]
    state: object = None


class _Mark:
    """Where a group of stack entries starts."""


@dataclass(slots=True)
class _Machine:
    stack: list[object] = field(default_factory=list[object])
    memo: dict[int, object] = field(default_factory=dict[int, object])

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        return self.stack.pop()

    def group(self) -> list[object]:
        """Pop all down to the last mark."""
        at = max(place for place, value in enumerate(self.stack) if isinstance(value, _Mark))
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def gather(self, count: int) -> None:
        values = self.stack[-count:]
        if len(values) != count:
            raise ObjectArrayError("it takes more values than it has")
        del self.stack[-count:]
        self.push(tuple(values))

    def look_up(self, module: object, name: object) -> None:
        if (module, name) not in _GLOBALS:
            raise ObjectArrayError(f"it names {module}.{name}")
        self.push(_Global(str(name)))

    def look_up_stacked(self) -> None:
        name = self.pop()
        self.look_up(self.pop(), name)

    def call(self) -> None:
        arguments = self.pop()
        function = self.pop()
        if not isinstance(function, _Global) or not isinstance(arguments, tuple):
            raise ObjectArrayError("it calls what is no function")
        self.push(_Call(function.name, cast("tuple[object, ...]", arguments)))

    def set_state(self) -> None:
        state = self.pop()
        target = self.stack[-1]
        if not isinstance(target, _Call):
            raise ObjectArrayError("it sets the state of what has none")
        target.state = state

    def append(self, values: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise ObjectArrayError("it appends to what is no list")
        cast("list[object]", target).extend(values)

    def set_items(self, values: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise ObjectArrayError("it sets items of what is no dictionary")
        names = values[::2]
        if not all(isinstance(name, str) for name in names):
            raise ObjectArrayError("a dictionary has a key that is no text")
        pairs = zip(names, values[1::2], strict=True)
        cast("dict[object, object]", target).update(pairs)

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]


def _name_global(machine: _Machine, argument: object) -> None:
    module, _, name = str(argument).partition(" ")
    machine.look_up(module, name)


def _pop_one(machine: _Machine) -> list[object]:
    return [machine.pop()]


def _pop_pair(machine: _Machine) -> list[object]:
    value = machine.pop()
    return [machine.pop(), value]


_PUSH_ARGUMENT = [
    *("SHORT_BINUNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES"),
    *("BININT", "BININT1", "BININT2", "BINFLOAT"),
]

_OPERATIONS: dict[str, Callable[[_Machine, object], None]] = {
    **dict.fromkeys(_PUSH_ARGUMENT, lambda m, a: m.push(a)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda m, a: m.push(m.memo[cast("int", a)])),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), lambda m, a: m.remember(cast("int", a))),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda _m, _a: None),
    "MEMOIZE": lambda m, _: m.remember(len(m.memo)),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    "MARK": lambda m, _: m.push(_Mark()),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "EMPTY_DICT": lambda m, _: m.push({}),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "TUPLE": lambda m, _: m.push(tuple(m.group())),
    "TUPLE1": lambda m, _: m.gather(1),
    "TUPLE2": lambda m, _: m.gather(2),
    "TUPLE3": lambda m, _: m.gather(3),
    "GLOBAL": _name_global,
    "STACK_GLOBAL": lambda m, _: m.look_up_stacked(),
    "REDUCE": lambda m, _: m.call(),
    "BUILD": lambda m, _: m.set_state(),
    "APPEND": lambda m, _: m.append(_pop_one(m)),
    "APPENDS": lambda m, _: m.append(m.group()),
    "SETITEM": lambda m, _: m.set_items(_pop_pair(m)),
    "SETITEMS": lambda m, _: m.set_items(m.group()),
}


def _run(pickled: bytes) -> object:
    machine = _Machine()
    for operation, argument, _ in pickletools.genops(pickled):
        step = _OPERATIONS.get(operation.name)
        if step is None:
            raise ObjectArrayError(f"it uses the operation {operation.name}")
        step(machine, argument)
    return machine.pop()


def read_entries(pickled: bytes) -> list[Entry]:
    """Read a one-dimensional object array of dictionaries of texts and numeric arrays.

    Raises `ObjectArrayError` for any other pickle.
    """
    try:
        contents = _contents(_run(pickled))
        return [_entry(item) for item in contents]
    except (ValueError, IndexError, KeyError, TypeError, struct.error) as error:
        raise ObjectArrayError(f"it is damaged ({error})") from error


def _contents(value: object) -> list[object]:
    letters, contents = _array(value)
    if letters != "|O8" or not isinstance(contents, list):
        raise ObjectArrayError("it is no list of objects")
    return cast("list[object]", contents)


def _entry(value: object) -> Entry:
    if not isinstance(value, dict):
        raise ObjectArrayError("an entry is no dictionary")
    items = cast("dict[str, object]", value).items()
    return {name: item if isinstance(item, str) else _numbers(item) for name, item in items}


def _numbers(value: object) -> npt.NDArray[np.generic]:
    letters, contents = _array(value)
    if letters not in _NUMBER_TYPES or not isinstance(contents, bytes):
        raise ObjectArrayError("a value is no array of numbers")
    return np.frombuffer(contents, dtype=np.dtype(letters))


def _array(value: object) -> tuple[str, object]:
    """Return an array's type in NumPy's letters, and its contents."""
    _version, _shape, dtype, _fortran, contents = _state(value, _RECONSTRUCT)
    order = _state(dtype, "dtype")[1]
    letters = cast("_Call", dtype).arguments[0]
    return f"{order}{letters}", contents


def _state(value: object, name: str) -> tuple[object, ...]:
    if isinstance(value, _Call) and value.name == name:
        state = value.state
        if isinstance(state, tuple):
            return cast("tuple[object, ...]", state)
    raise ObjectArrayError(f"a value is not made by {name}")


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
        texts = [str(text) for text in array] if are_characters(array) else ["\0"]
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
    """Unpack an archive; E150 if it is not one, or unpacks to too much."""
    try:
        members = unpacked(data)
    except ArchiveError as error:
        message = f"a raw archive must be a NumPy archive (.npz), and {error}"
        raise fail("E150", message, origin=Origin(model=name)) from error
    return Archive(name, {key.removesuffix(".npy"): held for key, held in members.items()})


def pack_archive(arrays: Mapping[str, npt.ArrayLike]) -> bytes:
    """Return an uncompressed archive of arrays by key; the same arrays give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array))
    return file.getvalue()
