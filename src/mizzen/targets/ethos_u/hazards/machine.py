"""What of each family decides the order of its work: queues, block dependency, own memory.

Ref: Ethos-U55, U65 and U85 technical reference manuals (KERNEL_WAIT, DMA_WAIT, BLOCKDEP, shared
buffer); Vela 5.2.0, architecture_features.py (outstanding operations).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.config import ACCELERATORS, Accelerator
from mizzen.targets.ethos_u.program import Program

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


def accelerator_of(program: Program) -> Accelerator:
    """Give the accelerator that a program's payload names.

    Raises E604 without a CONFIG word, E605 for one that no accelerator has.
    """
    if program.hardware is None:
        raise fail(
            "E604",
            "the driver payload must say which hardware it is for, and has no CONFIG word",
            help="compile the network again; every current compiler writes one",
        )
    word = program.hardware.config_word
    for accelerator in ACCELERATORS.values():
        if accelerator.config_word == word:
            return accelerator
    raise fail(
        "E605",
        f"CONFIG must be the word of an accelerator, not {word:#010x}",
        help="the artifact is damaged; compile it again",
    )
