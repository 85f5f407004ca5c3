"""Thumb loads and stores taken apart: what they access, and what they leave in registers.

A processor that stops at an access of the NPU's page leaves the access to us. Every form that
compilers make of a register's access is here: single, double and multiple transfers, with immediate
and register offsets, written back or not, and those with acquire and release.

Ref: Arm Armv8-M Architecture Reference Manual (DDI0553), C2.2: encodings of LDR, STR, LDRD,
STRD, LDM, STM, LDA, STL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PC = 15
SP = 13
Registers = Callable[[int], int]
"""Gives a core register by its number."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One load or store.

    length_bytes  of the instruction
    size_bytes    of each access
    registers     core registers, in the order of their addresses, `size_bytes` apart
    writeback     a register and its new value; None if the base stays
    """

    loads: bool
    length_bytes: int
    size_bytes: int
    signed: bool
    address: int
    registers: tuple[int, ...]
    writeback: tuple[int, int] | None = None

    @property
    def end(self) -> int:
        """One past the last address."""
        return self.address + self.size_bytes * len(self.registers)

    def extended(self, value: int) -> int:
        """Return the new value of a register when `value` is loaded."""
        sign = 1 << 8 * self.size_bytes - 1
        return (value - 2 * sign) & 0xFFFF_FFFF if self.signed and value & sign else value


def is_wide(first: int) -> bool:
    """Whether an instruction that begins with this halfword has two of them."""
    return first >> 11 in {0b11101, 0b11110, 0b11111}


def decode(first: int, second: int, pc: int, registers: Registers) -> Transfer | None:
    """Return the transfer of the instruction at `pc`; None if it is no load or store known here.

    first, second  the halfwords from `pc` on
    """

    def register(number: int) -> int:
        return (pc + 4) & ~3 if number == PC else registers(number)

    if not is_wide(first):
        return _narrow(first, register)
    match first >> 9:
        case 0b1111100:
            return _single(first, second, register)
        case 0b1110100 if first >> 6 & 1:
            return _double(first, second, register)
        case 0b1110100:
            return _multiple(first, second, register)
        case _:
            return None


_BY_REGISTER = (
    (False, 4, False), (False, 2, False), (False, 1, False), (True, 1, True),
    (True, 4, False), (True, 2, False), (True, 1, False), (True, 2, True),
)  # fmt: skip
"""Opcodes of transfers with a register offset: load, size in bytes, signed."""


def _narrow(word: int, register: Registers) -> Transfer | None:
    low, base = word & 7, word >> 3 & 7
    immediate = word >> 6 & 31
    loads = bool(word >> 11 & 1)
    match word >> 12:
        case 0b0100 if loads:
            address = register(PC) + 4 * (word & 0xFF)
            return Transfer(True, 2, 4, False, address, (word >> 8 & 7,))
        case 0b0101:
            loads, size, signed = _BY_REGISTER[word >> 9 & 7]
            address = register(base) + register(word >> 6 & 7)
            return Transfer(loads, 2, size, signed, address & 0xFFFF_FFFF, (low,))
        case 0b0110:
            return Transfer(loads, 2, 4, False, register(base) + 4 * immediate, (low,))
        case 0b0111:
            return Transfer(loads, 2, 1, False, register(base) + immediate, (low,))
        case 0b1000:
            return Transfer(loads, 2, 2, False, register(base) + 2 * immediate, (low,))
        case 0b1001:
            address = register(SP) + 4 * (word & 0xFF)
            return Transfer(loads, 2, 4, False, address, (word >> 8 & 7,))
        case 0b1100:
            base = word >> 8 & 7
            listed = tuple(number for number in range(8) if word >> number & 1)
            after = register(base) + 4 * len(listed)
            kept = loads and base in listed
            back = None if kept else (base, after & 0xFFFF_FFFF)
            return Transfer(loads, 2, 4, False, register(base), listed, back)
        case _:
            return None


def _single(first: int, second: int, register: Registers) -> Transfer | None:
    loads, signed, size = bool(first >> 4 & 1), bool(first >> 8 & 1), 1 << (first >> 5 & 3)
    base, target = first & 15, second >> 12
    start, back = register(base), None
    if size == 8:
        return None
    if base == PC:
        address = start + (second & 0xFFF if first >> 7 & 1 else -(second & 0xFFF))
    elif first >> 7 & 1:
        address = start + (second & 0xFFF)
    elif second >> 11 & 1:
        indexed, up, written = second >> 10 & 1, second >> 9 & 1, second >> 8 & 1
        after = start + (second & 0xFF if up else -(second & 0xFF))
        address = after if indexed else start
        back = (base, after & 0xFFFF_FFFF) if written else None
    elif second >> 6 & 31:
        return None
    else:
        address = start + (register(second & 15) << (second >> 4 & 3))
    return Transfer(loads, 4, size, signed, address & 0xFFFF_FFFF, (target,), back)


_ORDERED_BYTES = {8: 1, 9: 2, 10: 4}
"""Sizes of LDA and STL, by bits 7:4 of the second halfword."""


def _double(first: int, second: int, register: Registers) -> Transfer | None:
    indexed, up, written = first >> 8 & 1, first >> 7 & 1, first >> 5 & 1
    loads, base = bool(first >> 4 & 1), first & 15
    if not indexed and not written:
        size = _ORDERED_BYTES.get(second >> 4 & 15)
        if not up or size is None:
            return None
        return Transfer(loads, 4, size, False, register(base), (second >> 12,))
    offset = 4 * (second & 0xFF)
    after = register(base) + (offset if up else -offset)
    address = after if indexed else register(base)
    back = (base, after & 0xFFFF_FFFF) if written else None
    pair = (second >> 12, second >> 8 & 15)
    return Transfer(loads, 4, 4, False, address & 0xFFFF_FFFF, pair, back)


def _multiple(first: int, second: int, register: Registers) -> Transfer | None:
    loads, written, base = bool(first >> 4 & 1), first >> 5 & 1, first & 15
    listed = tuple(number for number in range(15) if second >> number & 1)
    if first >> 7 & 3 not in {0b01, 0b10} or second >> 15 or not listed:
        return None
    before = first >> 8 & 1
    size = 4 * len(listed)
    start = register(base) - (size if before else 0)
    after = register(base) + (-size if before else size)
    back = (base, after & 0xFFFF_FFFF) if written else None
    return Transfer(loads, 4, 4, False, start & 0xFFFF_FFFF, listed, back)
