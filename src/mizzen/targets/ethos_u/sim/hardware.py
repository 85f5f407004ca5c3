"""The part of the hardware configuration that decides what a stream computes."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.config import ACCELERATORS
from mizzen.targets.ethos_u.program import HardwareId

BY_CONFIG = {row.config_word: row for row in ACCELERATORS.values()}
"""Accelerators by the CONFIG word of the driver payload."""


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
    """Find the accelerator that a driver payload names by its CONFIG word.

    Raises E604 without a CONFIG word, E605 for one that no accelerator has, or that of an
    accelerator which the simulator does not execute.
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
        raise fail(
            "E605",
            f"the simulator executes Ethos-U55 and Ethos-U65, not {row.name}",
            help="compile the network for one of the accelerators that `mizzen targets` marks",
        )
    return Hardware(row.arch, row.macs, row.cores, row.shram_kib * 1024 // row.cores)
