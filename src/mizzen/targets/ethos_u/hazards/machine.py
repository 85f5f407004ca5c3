"""What of each family decides the order of its work: queues, block dependency, own memory.

Ref: Ethos-U55, U65 and U85 technical reference manuals (KERNEL_WAIT, DMA_WAIT, BLOCKDEP, shared
buffer); Vela 5.2.0, architecture_features.py (outstanding operations).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.commands import Arch

BANK_BYTES = 1024
"""A bank of the shared buffer, the unit of IB_END, IB_START and AB_START."""
OUTPUT_BANKS = 2
"""Banks at the start of the shared buffer through which results leave."""
TABLE_MEMORY_BYTES = 2048
"""Lookup tables: the end of the shared buffer, or all of the table memory of U85."""
ACCUMULATOR_BUFFERS = 2
"""Blocks of accumulators that are in use at once."""


@dataclass(frozen=True, slots=True)
class Order:
    """A row: what may be outstanding at once.

    kernels    kernel operations that have been started and not finished
    transfers  transfers likewise
    blockdep   greatest BLOCKDEP
    """

    kernels: int
    transfers: int
    blockdep: int


ORDERS: dict[Arch, Order] = {
    #               kernels transfers blockdep
    Arch.U55: Order(2, 1, 3),
    Arch.U65: Order(2, 2, 3),
    Arch.U85: Order(2, 4, 7),
}
