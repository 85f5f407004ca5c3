"""What one operation of a stream touches, and what of each machine decides the order of its work.

Ref: Ethos-U55, U65 and U85 technical reference manuals (KERNEL_WAIT, DMA_WAIT, BLOCKDEP, shared
buffer); Vela 5.2.0, architecture_features.py (outstanding operations).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.judge.hazards.blocks import Blocks
from mizzen.targets.ethos_u.judge.hazards.footprint import NOTHING, Footprint
from mizzen.targets.ethos_u.judge.hazards.maps import MemoryBlock
from mizzen.targets.ethos_u.machine.commands import Arch


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of one memory that an operation reads or writes, and what they are to it."""

    what: str
    place: MemoryBlock
    bytes: Footprint


@dataclass(frozen=True, slots=True)
class Transfer:
    """A DMA operation.

    moves  how far from the source the destination lies, where one run of bytes is copied; None
           where it is several
    """

    name: str
    origin: Origin
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    moves: int | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """An operation of the kernel queue.

    blocks    how it does its work
    blockdep  value of BLOCKDEP
    table     the lookup table that it reads, if any
    scratch   bytes of the shared buffer that it uses for itself
    goes_on   whether its result stays in a chain buffer, so that the next one is of its chain
    mode      of pooling, an elementwise operation or a resize; else empty
    microblock  of U85, by its name
    """

    name: str
    origin: Origin
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    blocks: Blocks
    blockdep: int
    table: Footprint = NOTHING
    scratch: Footprint = NOTHING
    goes_on: bool = False
    mode: str = ""
    microblock: str = ""


Operation = Kernel | Transfer


BANK_BYTES = 1024
"""A bank of the shared buffer, the unit of IB_END, IB_START and AB_START."""
OUTPUT_BANKS = 2
"""Banks at the start of the shared buffer through which results leave."""
TABLE_MEMORY_BYTES = 2048
"""Lookup tables: the end of the shared buffer, or all of the table memory of U85."""
ACCUMULATOR_BUFFERS = 2
"""Blocks of accumulators that are in use at once."""


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A row: what may be outstanding at once.

    kernels    kernel operations that have been started and not finished
    transfers  transfers likewise
    blockdep   greatest BLOCKDEP
    """

    kernels: int
    transfers: int
    blockdep: int


ORDERS: dict[Arch, Outstanding] = {
    #               kernels transfers blockdep
    Arch.U55: Outstanding(2, 1, 3),
    Arch.U65: Outstanding(2, 2, 3),
    Arch.U85: Outstanding(2, 4, 7),
}
