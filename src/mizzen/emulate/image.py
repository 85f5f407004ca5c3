"""Firmware as an ELF file: what is loaded where, and what its symbols are called."""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.emulate.guest import GuestMemory

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

LARGEST_FILE_BYTES = 1 << 28
MOST_SEGMENTS = 256
MOST_SYMBOLS = 1 << 16
MISSING = "pip install '.[emulate]' in the folder of Mizzen's sources"


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of the file that are loaded at a physical address."""

    address: int
    data: bytes

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.address + len(self.data)


@dataclass(frozen=True)
class Image:
    """A firmware.

    entry    address of the first instruction, with bit 0 for Thumb
    symbols  addresses of functions, their ends and names, ascending
    """

    entry: int
    segments: tuple[Segment, ...]
    symbols: tuple[tuple[int, int, str], ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self.symbols]

    def place(self, address: int) -> str:
        """Return an address for people, with the function that it is in: ``0x10000212 (main)``."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self.symbols[index][1]:
            return f"{address:#010x}"
        return f"{address:#010x} ({self.symbols[index][2]})"

    def load(self, memory: GuestMemory) -> None:
        """Put the segments into a board's memories. E421 for one that lies in none."""
        for segment in self.segments:
            found = memory.bank(segment.address)
            size = len(segment.data)
            if found is None or found[1] + size > found[0].memory.size_bytes:
                raise fail(
                    "E421",
                    f"the firmware's segment at {segment.address:#010x} must lie in a memory of "
                    f"the board, and its {size} bytes do not",
                    help="link it with the board's own linker script, or choose another --board",
                )
            bank, offset = found
            bank.data[offset : offset + size] = np.frombuffer(segment.data, np.uint8)


def read_image(data: bytes) -> Image:
    """Read a 32-bit Arm executable. E420 if it is none, or damaged."""
    try:
        from elftools.common.exceptions import ELFError, ELFParseError
        from elftools.construct import ConstructError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise fail("E419", "reading firmware needs pyelftools", help=MISSING) from None
    if len(data) > LARGEST_FILE_BYTES:
        raise _no_image(f"a file of at most {LARGEST_FILE_BYTES} bytes, not {len(data)}")
    damaged = (
        ELFError, ELFParseError, ConstructError, struct.error, UnicodeError, ValueError, KeyError,
        IndexError, TypeError, AttributeError, AssertionError, OverflowError, MemoryError,
        RecursionError, OSError, NotImplementedError,
    )  # fmt: skip
    try:
        return _image(ELFFile(BytesIO(data)), data)
    except MizzenError:
        raise
    except damaged as error:
        reason = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
        raise _no_image(f"whole and an ELF file, and is not: {reason}") from None


def vector_table(image: Image) -> int:
    """Return where the vector table is: its second word is the entry, or else an address of code.

    E423 where no segment begins with one, since hardware would start anywhere.
    """
    starts = {
        segment.address: int.from_bytes(segment.data[4:8], "little")
        for segment in image.segments
        if len(segment.data) >= 8
    }
    for address, reset in starts.items():
        if reset == image.entry | 1:
            return address
    for address, reset in starts.items():
        if reset & 1 and any(reset in segment for segment in image.segments):
            return address
    raise fail(
        "E423",
        "a segment of the firmware must begin with a vector table, whose second word is the "
        f"address of the first instruction plus 1, such as {image.entry | 1:#010x}; none does",
    )


def _image(file: ELFFile, data: bytes) -> Image:
    header = file.header
    if file.elfclass != 32 or not file.little_endian or header["e_machine"] != "EM_ARM":
        raise _no_image("for a 32-bit little-endian Arm processor")
    if header["e_phnum"] > MOST_SEGMENTS:
        raise _no_image(f"of at most {MOST_SEGMENTS} segments, not {header['e_phnum']}")
    segments: list[Segment] = []
    for segment in file.iter_segments("PT_LOAD"):
        offset, size = segment["p_offset"], segment["p_filesz"]
        if offset + size > len(data):
            raise _no_image(f"whole, and its segment at {segment['p_paddr']:#010x} is cut off")
        if size:
            segments.append(Segment(segment["p_paddr"], data[offset : offset + size]))
    if not segments:
        raise _no_image("an executable with something to load")
    return Image(header["e_entry"], tuple(segments), _symbols(file))


def _symbols(file: ELFFile) -> tuple[tuple[int, int, str], ...]:
    from elftools.elf.sections import SymbolTableSection

    table = file.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection) or table.num_symbols() > MOST_SYMBOLS:
        return ()
    functions = [row for row in table.iter_symbols() if row["st_info"]["type"] == "STT_FUNC"]
    rows = {
        (start := row["st_value"] & ~1): (start, start + max(row["st_size"], 2), row.name)
        for row in functions
    }
    return tuple(sorted(rows.values()))


def _no_image(what: str) -> MizzenError:
    return fail("E420", f"the firmware must be {what}", help="give an ELF executable for Cortex-M")
