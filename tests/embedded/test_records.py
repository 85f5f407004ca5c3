"""Images with addresses: Intel HEX, S-records, UF2; whole, with gaps, damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.embedded.records import Segment, segments
from mizzen.embedded.search import payloads

ROOT = Path(__file__).parents[2]
PTE = (ROOT / "tests" / "artifact" / "pte" / "cortex_m_u55.pte").read_bytes()
CODE = bytes(range(256)) * 5
MEMORY = {0x0800_FF00: CODE, 0x3000_0040: CODE[:64] + PTE + CODE[:100]}
"""Two runs; the first one crosses an upper half of addresses."""


def _lines(size: int) -> Iterator[tuple[int, bytes]]:
    for start, data in MEMORY.items():
        for at in range(0, len(data), size):
            yield start + at, data[at : at + size]


def intel() -> bytes:
    def record(address: int, kind: int, data: bytes) -> str:
        held = struct.pack(">BHB", len(data), address, kind) + data
        return ":" + (held + bytes([-sum(held) & 0xFF])).hex().upper()

    text, upper = [], -1
    for address, data in _lines(16):
        if address >> 16 != upper:
            upper = address >> 16
            text.append(record(0, 4, struct.pack(">H", upper)))
        text.append(record(address & 0xFFFF, 0, data))
    text += [record(0, 5, struct.pack(">I", 0x0800_0101)), record(0, 1, b""), "no record any more"]
    return "\r\n".join(text).encode()


def motorola() -> bytes:
    def record(kind: int, address: bytes, data: bytes) -> str:
        held = bytes([len(address) + len(data) + 1]) + address + data
        return f"S{kind}" + (held + bytes([~sum(held) & 0xFF])).hex()

    text = [record(0, b"\0\0", b"name")]
    text += [record(3, struct.pack(">I", address), data) for address, data in _lines(32)]
    return "\n".join([*text, record(7, bytes(4), b"")]).encode() + b"\n"


def uf2() -> bytes:
    def block(address: int, data: bytes, flags: int = 0x2000) -> bytes:
        head = (0x0A324655, 0x9E5D5157, flags, address, len(data), 0, 1, 7)
        return struct.pack("<8I476sI", *head, data, 0x0AB16F30)

    other = block(0x5000, b"not for the memory", 1)
    return b"".join(block(address, data) for address, data in _lines(256)) + other


FORMS: Mapping[str, Callable[[], bytes]] = {"hex": intel, "srec": motorola, "uf2": uf2}


@pytest.mark.parametrize("ending", FORMS)
def test_bytes_are_at_their_addresses(ending: str) -> None:
    runs = tuple(Segment(address, data) for address, data in MEMORY.items())
    assert segments(FORMS[ending](), "fw") == runs


@pytest.mark.parametrize("ending", FORMS)
def test_a_network_in_it_runs(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"fw.{ending}"
    path.write_bytes(FORMS[ending]())
    given = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    np.testing.assert_array_equal(mizzen.load(path).run(given), mizzen.load(PTE).run(given))
    (found,) = payloads(path.read_bytes(), path.name)
    assert found.offset == 0x3000_0040 + 64
    assert main(["check", "--artifact", str(path)]) == 0
    assert "0 hazards" in capsys.readouterr().out


def test_upper_addresses_of_segments_and_bytes_given_twice() -> None:
    text = b":020000021000EC\n:0400000001020304F2\n:02000200AABB97\n:00000001FF\n"
    assert segments(text, "fw") == (Segment(0x10000, b"\1\2\xaa\xbb"),)
    assert segments(b"\x7fELF", "fw") is None


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b":0400000001020304F3\n", "line 1 of fw must be a whole record of Intel HEX"),
        (b":00000001FF\n"[:5] + b"00000000\n", "line 1 of fw must be a whole record of Intel HEX"),
        (b":0400000001020304F2\n\n:04\n", "line 3 of fw must be a whole record of Intel HEX"),
        (b"S1050000AABB95\nS105", "line 2 of fw must be a whole Motorola S-record"),
        (uf2()[:700], "the block at byte 512 of fw must be a whole one of UF2"),
    ],
    ids=["checksum", "length", "cut", "srec", "uf2"],
)
def test_damaged_records_are_refused(data: bytes, what: str) -> None:
    with pytest.raises(MizzenError) as caught:
        segments(data, "fw")
    assert str(caught.value) == (
        f"error[E184]: {what}, with the length and the checksum that it says\n"
        "  help the file is cut or was changed: copy it again"
    )


def test_changed_files_end_in_a_list_or_in_an_error() -> None:
    rng = np.random.default_rng(7)
    for made in FORMS.values():
        whole = made()
        for _ in range(60):
            changed = bytearray(whole)
            for at in rng.integers(0, len(whole), 3):
                changed[at] = int(rng.integers(256))
            try:
                assert all(each.data for each in payloads(bytes(changed), "fw.hex"))
            except MizzenError:
                continue
