"""The part of the hardware configuration that decides what a stream computes."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.config import ACCELERATORS
from mizzen.targets.ethos_u.program import HardwareId

BY_CONFIG = {row.config_word: row for row in ACCELERATORS.values()}
"""Accelerators by the CONFIG word of the driver payload."""


LUT_RAM_BYTES = 2048
"""The table RAM of U85, whatever its size."""
WEIGHT_STREAMS = {128: 1, 256: 1, 512: 2, 1024: 4, 2048: 4}
"""Streams that the weights of an operation are divided into on U85, by its MACs per cycle."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What of an accelerator decides results; sizes in channels and bytes.

    internal_bytes   one core's shared buffer, or the table RAM
    weight_streams   streams that one operation's weights are divided into
    """

    arch: Arch
    macs: int
    cores: int
    internal_bytes: int
    weight_streams: int

    @property
    def ofm_ublock_depth(self) -> int:
        """Output channels of a microblock of U55 and U65: 4 on the smallest U55, else 8."""
        return 4 if self.macs == 32 else 8


def hardware_of(identity: HardwareId | None) -> Hardware:
    """Find the accelerator that a driver payload names by its CONFIG word.

    Raises E604 without a CONFIG word, E605 for one that no accelerator has.
    """
    if identity is None:
        raise fail(
            "E604",
            "the driver payload must say which hardware it is for, and has no CONFIG word",
            help="compile the network again; every current compiler writes one",
        )
    row = BY_CONFIG.get(identity.config_word)
    if row is None:
        raise fail(
            "E605",
            f"CONFIG must be the word of an accelerator, not {identity.config_word:#010x}",
            help="the artifact is damaged; compile it again",
        )
    if row.shram_kib is None:
        return Hardware(row.arch, row.macs, row.cores, LUT_RAM_BYTES, WEIGHT_STREAMS[row.macs])
    internal = row.shram_kib * 1024 // row.cores
    return Hardware(row.arch, row.macs, row.cores, internal, row.cores)
