"""The part of the hardware configuration that decides what a stream computes."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.program import HardwareId

PRODUCTS = {0: Arch.U55, 1: Arch.U65, 2: Arch.U85}
"""CONFIG register, bits 31:28."""

MACS_PER_CORE = 256
"""The largest MAC array of one U55 or U65 core; above it there are two."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One core's microblock and shared buffer; sizes in channels and bytes."""

    arch: Arch
    macs: int
    cores: int
    shared_buffer_bytes: int

    @property
    def ofm_ublock_depth(self) -> int:
        """Output channels of a microblock: 4 on the smallest U55, else 8."""
        return 4 if self.macs == 32 else 8


def hardware_of(identity: HardwareId | None) -> Hardware:
    """Read the CONFIG word of a driver payload.

    Bits 3:0 hold log2 of the MACs per cycle, 15:8 the shared buffer in KiB over all cores, 31:28
    the product (Ethos-U core driver, register CONFIG). Raises E604 without a CONFIG word, E605 for
    a product that the simulator does not execute.
    """
    if identity is None:
        raise fail(
            "E604",
            "the driver payload must say which hardware it is for, and has no CONFIG word",
            help="compile the network again; every current compiler writes one",
        )
    word = identity.config_word
    arch = PRODUCTS.get(word >> 28)
    if arch not in (Arch.U55, Arch.U65):
        product = f"product {word >> 28}" if arch is None else f"Ethos-{arch.name}"
        raise fail(
            "E605",
            f"the simulator executes Ethos-U55 and Ethos-U65, not {product}",
            help="compile the network for one of the accelerators that `mizzen targets` marks",
        )
    macs = 1 << (word & 15)
    cores = max(1, macs // MACS_PER_CORE)
    shared_buffer_bytes = (word >> 8 & 0xFF) * 1024 // cores
    if not 32 <= macs <= 512 or shared_buffer_bytes < 16 * 1024:
        raise fail(
            "E605",
            f"CONFIG {word:#010x} must name 32 to 512 MACs and at least 16 KiB of shared buffer "
            f"per core, not {macs} MACs and {shared_buffer_bytes} bytes",
            help="the artifact is damaged; compile it again",
        )
    return Hardware(arch, macs, cores, shared_buffer_bytes)
