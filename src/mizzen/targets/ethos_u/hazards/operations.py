"""What one operation of a stream touches."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.hazards.blocks import Blocks
from mizzen.targets.ethos_u.hazards.intervals import EMPTY, Intervals
from mizzen.targets.ethos_u.hazards.maps import MemoryBlock


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of one memory that an operation reads or writes, and what they are to it."""

    what: str
    place: MemoryBlock
    bytes: Intervals


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
    """

    name: str
    origin: Origin
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    blocks: Blocks
    blockdep: int
    table: Intervals = EMPTY
    scratch: Intervals = EMPTY
    goes_on: bool = False


Operation = Kernel | Transfer
