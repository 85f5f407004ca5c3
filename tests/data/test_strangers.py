"""Files of data from strangers: each ends in a diagnostic that says what must hold."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mizzen.data.arrays import read_archive, read_array
from mizzen.data.labels import labels_of, read_labels
from mizzen.data.sound import read_recording
from mizzen.diagnostics import MizzenError


def said(error: pytest.ExceptionInfo[MizzenError]) -> str:
    return f"{error.value.diagnostic.code}: {error.value.diagnostic.message}"


def chunk(kind: bytes, held: bytes, size: int | None = None) -> bytes:
    return kind + struct.pack("<I", len(held) if size is None else size) + held


def form(kind: int = 1, channels: int = 1, rate: int = 16000, bits: int = 16) -> bytes:
    align = channels * bits // 8
    return struct.pack("<HHIIHH", kind, channels, rate, rate * align % (1 << 32), align, bits)


def riff(*chunks: bytes, size: int | None = None) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return chunk(b"RIFF", body, size)


SAMPLES = np.array([1, -2, 3], np.int16).tobytes()


@pytest.mark.parametrize(
    "data",
    [
        riff(chunk(b"fmt ", form()), chunk(b"data", SAMPLES)),
        riff(chunk(b"LIST", b"odd\0"), chunk(b"fmt ", form()), chunk(b"data", SAMPLES)),
        riff(chunk(b"LIST", b"odd") + b"\0", chunk(b"fmt ", form()), chunk(b"data", SAMPLES)),
        riff(chunk(b"fmt ", form()), chunk(b"data", SAMPLES, 0xFFFFFFFF), size=0xFFFFFFFF),
        riff(
            chunk(b"fmt ", form(0xFFFE) + bytes(8) + b"\1\0" + bytes(14)), chunk(b"data", SAMPLES)
        ),
        riff(chunk(b"fmt ", form()), chunk(b"data", SAMPLES + b"x")),
    ],
    ids=["plain", "chunk in front", "odd chunk", "streamed", "extensible", "half a sample"],
)
def test_recordings(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(data)
    found = read_recording(tmp_path / "a.wav")
    assert (found.samples.tolist(), found.rate_hz, found.channels) == ([1, -2, 3], 16000, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it does not begin with RIFF and WAVE"),
        (b"RIFF", "it does not begin with RIFF and WAVE"),
        (riff(), "it has no chunk that says what its samples are"),
        (riff(chunk(b"data", SAMPLES)), "it has no chunk that says what its samples are"),
        (riff(chunk(b"fmt ", form()[:9])), "it has no chunk that says what its samples are"),
        (riff(chunk(b"fmt ", form())), "it ends before its samples"),
        (
            riff(chunk(b"fmt ", form()), chunk(b"LIST", b"", 1 << 31), chunk(b"data", SAMPLES)),
            "it ends before its samples",
        ),
        (
            riff(chunk(b"fmt ", form()), chunk(b"data", SAMPLES), size=28),
            "it ends before its samples",
        ),
        (
            riff(chunk(b"fmt ", form(bits=8)), chunk(b"data", SAMPLES)),
            "samples have 8 bits in the format 1",
        ),
        (
            riff(chunk(b"fmt ", form(kind=3)), chunk(b"data", SAMPLES)),
            "samples have 16 bits in the format 3",
        ),
        (
            riff(chunk(b"fmt ", form(channels=0)), chunk(b"data", SAMPLES)),
            "it has 0 channels of 16000 samples a second",
        ),
        (
            riff(chunk(b"fmt ", form(rate=0)), chunk(b"data", SAMPLES)),
            "it has 1 channels of 0 samples a second",
        ),
    ],
)
def test_no_recordings(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    with pytest.raises(MizzenError) as error:
        read_recording(path)
    assert said(error) == f"E203: {path} must be a WAV file of 16-bit samples: {reason}"


def archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, held in members.items():
            opened.writestr(name.replace("_npy", ".npy"), held)
    return file.getvalue()


def npy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def headed(text: str, contents: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + contents


def header(descr: str, shape: str) -> str:
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"


NO_ARRAYS = {
    "bytes": (b"hello", "must start like an array of NumPy"),
    "cut off": (npy(np.arange(9))[:-1], "must have the bytes of int64[9], not 71"),
    "objects": (headed(header("|O", "(1,)"), b"\x80\x04."), "must hold numbers, not object"),
    "complex": (npy(np.zeros(2, np.complex64)), "must hold numbers, not complex64"),
    "records": (npy(np.zeros(2, "i4,i4")), "must hold numbers, not [('f0', '<i4'), ('f1', '<i4')]"),
    "empty texts": (headed(header("<U0", "(3,)")), "must have a shape of arrays, not <U0[3]"),
    "empty, and beyond": (
        headed(header("|i1", "(0, 9223372036854775808)")),
        "must have a shape of arrays, not int8[0, 9223372036854775808]",
    ),
    "no characters": (
        headed(header("<U1", "(1,)"), b"\xff\xff\xff\x7f"),
        "must have characters up to 0x10ffff",
    ),
    "no characters, the other way round": (
        headed(header(">U1", "(1,)"), b"\x7f\xff\xff\xff"),
        "must have characters up to 0x10ffff",
    ),
    "endless rows of nothing": (
        headed(header("<i8", "(2147483647, 0, 2)")),
        "must have a shape of arrays, not int64[2147483647, 0, 2]",
    ),
    "many axes": (headed(header("|i1", f"({'1,' * 65})"), b"x"), "must have a shape of arrays"),
    "negative": (headed(header("|i1", "(-1,)")), "must have a shape of arrays, not int8[-1]"),
}


@pytest.mark.parametrize("name", NO_ARRAYS)
def test_no_arrays(tmp_path: Path, name: str) -> None:
    data, reason = NO_ARRAYS[name]
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(MizzenError) as error:
        read_array(tmp_path / "x.npy")
    assert said(error).startswith(f"E203: {tmp_path}/x.npy must be a NumPy file: it {reason}")
    (tmp_path / "x.npz").write_bytes(archive(x_npy=data))
    with pytest.raises(MizzenError) as error:
        read_archive(tmp_path / "x.npz")
    start = f"E203: {tmp_path}/x.npz must be a NumPy archive: it 'x.npy' in it {reason}"
    assert said(error).startswith(start)


def test_an_archive_with_other_members(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(archive(x_npy=npy(np.arange(2)), readme=b"hello"))
    with pytest.raises(MizzenError, match=r"'readme' in it must start like an array"):
        read_archive(tmp_path / "x.npz")


def test_an_archive_that_unpacks_to_too_much(tmp_path: Path) -> None:
    data = headed(header("|i1", f"({1 << 28},)"), bytes(1 << 28))
    (tmp_path / "x.npz").write_bytes(archive(x_npy=data))
    with pytest.raises(MizzenError, match=r"must unpack to at most 1\d+ bytes, not 2684\d+"):
        read_archive(tmp_path / "x.npz")


def test_arrays_of_numbers_and_texts(tmp_path: Path) -> None:
    members = {
        "x": np.arange(6).reshape(2, 3),
        "labels": np.array(["a", "bc"]),
        "none": np.zeros((0, 4)),
    }
    np.savez_compressed(tmp_path / "x.npz", allow_pickle=False, **members)
    found = read_archive(tmp_path / "x.npz")
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in members.items()
    }
    np.save(tmp_path / "none.npy", members["none"])
    assert read_array(tmp_path / "none.npy").shape == (0, 4)


def test_labels_beyond_64_bits_are_real_numbers() -> None:
    assert labels_of(["1", "9223372036854775807"], (), "x").values.dtype == np.int64
    found = labels_of(["1", "9223372036854775808"], (), "x").values
    assert found.tolist() == [1.0, 2.0**63]


def test_labels_as_an_array_of_names(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array(["b", "a", "b"]))
    found = read_labels(tmp_path / "y.npy", ())
    assert (found.values.tolist(), found.classes) == ([1, 0, 1], ("a", "b"))


def test_a_line_of_labels_that_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("label\n1\n" + "x" * 70_000)
    with pytest.raises(MizzenError) as error:
        read_labels(tmp_path / "y.csv", ())
    assert said(error) == f"E243: {tmp_path}/y.csv must have lines of at most 65,536 characters"
