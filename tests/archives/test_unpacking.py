"""Archives that lie about their members, or unpack to too much; NumPy files of anything."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from mizzen.archives import (
    ArchiveError,
    array_of,
    largest_unpacked,
    member_names,
    packed,
    unpacked,
)

SIZE = 1 << 24


def error_of(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        unpacked(data)
    return str(caught.value)


def deflated(size: int, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a", bytes(size))
    return file.getvalue()


def npy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_what_was_packed() -> None:
    members = {"a": b"1", "b/c.npy": bytes(1000), "": b""}
    data = packed(members)
    assert unpacked(data) == members
    assert member_names(data) == set(members)
    assert packed(members) == data


def test_the_bound_grows_with_the_file() -> None:
    assert largest_unpacked(b"") == 1 << 27
    assert largest_unpacked(bytes(1000)) == (1 << 27) + 32_000
    assert largest_unpacked(bytes(1 << 25)) == 1 << 30


def test_more_than_the_bound() -> None:
    data = deflated((1 << 28) + 1)
    text = f"must unpack to at most {(1 << 27) + 32 * len(data)} bytes, not {(1 << 28) + 1}"
    assert error_of(data) == text


@pytest.mark.parametrize("declared", [0, 10, SIZE - 1, SIZE + 1, (1 << 32) - 2])
def test_a_lie_takes_no_memory(declared: int) -> None:
    data = deflated(SIZE).replace(SIZE.to_bytes(4, "little"), declared.to_bytes(4, "little"))
    tracemalloc.start()
    error_of(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * min(declared, SIZE) + (1 << 20)


def test_other_methods() -> None:
    assert error_of(deflated(10, zipfile.ZIP_LZMA)) == "must be stored or deflated, not method 14"
    assert error_of(deflated(10, zipfile.ZIP_BZIP2)) == "must be stored or deflated, not method 12"


def test_two_members_of_one_name() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", b"2")
    assert error_of(file.getvalue()) == "must name each of 2 members once, not 1"


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06" + bytes(17), b"TFL3" * 9])
def test_no_archive(data: bytes) -> None:
    assert error_of(data).startswith("cannot be unpacked: ")


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays(order: str) -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4).copy(order=order)  # pyright: ignore[reportArgumentType, reportCallIssue] one of its letters
    found = array_of(npy(array))
    assert found.dtype == np.int16
    assert found.tolist() == array.tolist()
    assert array_of(npy(np.array(2.5, np.float32))).tolist() == 2.5


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (npy(np.array([print], object)), "must hold numbers, not object"),
        (npy(np.zeros(3, "V5")), "must hold numbers, not |V5"),
        (npy(np.zeros(3, np.int16))[:-1], "must have the bytes of int16[3], not 5"),
        (npy(np.zeros(3, np.int16)) + b"x", "must have the bytes of int16[3], not 7"),
        (b"\x93NUMPY\x01\x00\x10\x27" + b"(" * 10000, "must start like an array of NumPy"),
        (b"\x93NUMPY\x09\x00", "must start like an array of NumPy"),
        (b"", "must start like an array of NumPy"),
    ],
)
def test_other_arrays(data: bytes, text: str) -> None:
    with pytest.raises(ArchiveError) as caught:
        array_of(data)
    assert str(caught.value).startswith(text)


def test_extents_whose_product_overflows() -> None:
    extents = b"(4294967296, 4294967296), }"
    head = b"{'descr': '|i1', 'fortran_order': False, 'shape': " + extents
    data = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
    with pytest.raises(ArchiveError, match="must have a shape of arrays, not int8"):
        array_of(data)
