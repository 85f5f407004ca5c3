"""The part of the hardware configuration that decides what a stream computes."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.program import HardwareId, accelerator_of

LUT_RAM_BYTES = 2048
"""The table RAM of U85, whatever its size."""


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
    accelerator = accelerator_of(identity)
    internal = (
        LUT_RAM_BYTES
        if accelerator.shram_kib is None
        else accelerator.shram_kib * 1024 // accelerator.cores
    )
    return Hardware(
        accelerator.arch, accelerator.macs, accelerator.cores, internal, accelerator.weight_streams
    )
