"""Firmware files: read, placed with checks, and damaged ones refused with an error of ours."""

from __future__ import annotations

import struct
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.boards import find_board
from mizzen.diagnostics import MizzenError
from mizzen.emulate.guest import GuestMemory
from mizzen.emulate.image import read_image, vector_table

from .firmware import BOARD, Build

DATA = Build("careful").prebuilt.read_bytes()
MEMORY = GuestMemory(find_board(BOARD))
PHYSICAL = 12
FILE_SIZE = 16
"""Places of p_paddr and p_filesz in a program header. Ref: ELF-32, Program Header."""


def changed(place: int, value: int) -> bytes:
    """Return the file with another word in its first program header."""
    start = struct.unpack_from("<I", DATA, 28)[0] + place
    return DATA[:start] + struct.pack("<I", value) + DATA[start + 4 :]


def refusal(data: bytes) -> str:
    with pytest.raises(MizzenError) as caught:
        read_image(data).load(MEMORY)
    return str(caught.value)


def test_an_image_says_where_everything_is() -> None:
    image = read_image(DATA)
    assert vector_table(image) == 0x10000000
    names = {name: start for start, _, name in image.symbols}
    assert image.place(names["main"] + 2) == f"{names['main'] + 2:#010x} (main)"
    assert image.place(0x55000000) == "0x55000000"


def test_an_image_is_what_another_reader_finds() -> None:
    elf_file = pytest.importorskip("elftools.elf.elffile", reason="pyelftools is not installed")
    image, other = read_image(DATA), elf_file.ELFFile(BytesIO(DATA))
    loaded = [row for row in other.iter_segments("PT_LOAD") if row["p_filesz"]]
    assert image.entry == other.header["e_entry"]
    assert [(row.address, row.data) for row in image.segments] == [
        (row["p_paddr"], row.data()) for row in loaded
    ]
    symbols = list(other.get_section_by_name(".symtab").iter_symbols())
    functions = [row for row in symbols if row["st_info"]["type"] == "STT_FUNC"]
    assert {name for _, _, name in image.symbols} <= {row.name for row in functions}
    assert {start for start, _, _ in image.symbols} == {row["st_value"] & ~1 for row in functions}


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"no firmware at all", DATA[:40], DATA[:200]])
def test_what_is_no_elf_file_is_refused(data: bytes) -> None:
    assert refusal(data).startswith("error[E420]: the firmware must be ")


def test_another_processor_is_refused() -> None:
    assert refusal(DATA[:18] + b"\x3e\x00" + DATA[20:]) == (
        "error[E420]: the firmware must be for a 32-bit little-endian Arm processor\n"
        "  help give an ELF executable for Cortex-M"
    )


def test_a_segment_outside_memory_is_refused() -> None:
    assert refusal(changed(PHYSICAL, 0x90000000)).startswith(
        "error[E421]: the firmware's segment at 0x90000000 must lie in a memory of the board, and "
    )


def test_a_huge_segment_is_refused() -> None:
    assert refusal(changed(FILE_SIZE, 0xFFFFFFFF)) == (
        "error[E420]: the firmware must be whole, and its segment at 0x10000000 is cut off\n"
        "  help give an ELF executable for Cortex-M"
    )


HEADERS = {
    "programs": (28, "<I", 1 << 31, "its table of"),
    "bytes of a program header": (42, "<H", 31, "its table of"),
    "number of programs": (44, "<H", 65535, "of at most 256 segments, not 65535"),
    "sections": (32, "<I", (1 << 32) - 1, "its table of"),
    "bytes of a section": (46, "<H", 0, "its table of"),
    "number of sections": (48, "<H", 65535, "its table of"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_tables_outside_the_file_are_refused(name: str) -> None:
    place, form, value, said = HEADERS[name]
    data = bytearray(DATA)
    struct.pack_into(form, data, place, value)
    assert said in refusal(bytes(data))
    assert refusal(bytes(data)).startswith("error[E420]: the firmware must be ")


def section(kind: int) -> int:
    """Return where the header of the first section of a type is."""
    start, count = *struct.unpack_from("<I", DATA, 32), *struct.unpack_from("<H", DATA, 48)
    (found,) = [
        start + 40 * index
        for index in range(count)
        if struct.unpack_from("<I", DATA, start + 40 * index + 4)[0] == kind
    ][:1]
    return found


def test_symbols_outside_the_file_are_refused() -> None:
    data = bytearray(DATA)
    struct.pack_into("<I", data, section(2) + 16, len(DATA))
    assert "its table of" in refusal(bytes(data))
    data = bytearray(DATA)
    struct.pack_into("<I", data, section(2) + 24, 999)
    assert "has no section 999 of names" in refusal(bytes(data))


def with_reset(entry: int, reset: int) -> bytes:
    """Return the file with another entry, and another reset handler in its vector table."""
    table = struct.unpack_from("<I", DATA, struct.unpack_from("<I", DATA, 28)[0] + 4)[0]
    whole = DATA[:24] + struct.pack("<I", entry) + DATA[28:]
    return whole[: table + 4] + struct.pack("<I", reset) + whole[table + 8 :]


def test_an_entry_need_not_be_the_reset_handler() -> None:
    image = read_image(with_reset(0x1000_0201, 0x1000_0301))
    assert vector_table(image) == 0x1000_0000


@pytest.mark.parametrize("reset", [0x1000_0300, 0x6000_0001, 0])
def test_a_file_without_vectors_is_refused(reset: int) -> None:
    with pytest.raises(MizzenError) as caught:
        vector_table(read_image(with_reset(0x1000_0201, reset)))
    assert str(caught.value) == (
        "error[E423]: a segment of the firmware must begin with a vector table, whose second word "
        "is the address of the first instruction plus 1, such as 0x10000201; none does"
    )


@given(st.integers(0, len(DATA) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_file_is_read_or_refused(place: int, new: bytes) -> None:
    with suppress(MizzenError):
        image = read_image(DATA[:place] + new + DATA[place + len(new) :])
        image.load(MEMORY)
        vector_table(image)


@given(st.integers(0, 52 + 32 * 3), st.integers(0, 0xFFFFFFFF))
def test_damaged_headers_are_read_or_refused(place: int, word: int) -> None:
    with suppress(MizzenError):
        read_image(DATA[:place] + struct.pack("<I", word) + DATA[place + 4 :]).load(MEMORY)
