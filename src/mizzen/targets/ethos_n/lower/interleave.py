"""How many channels a feature map has after an interleaving by the stride of a convolution.

Ref: Ethos-N driver stack 23.02; channel c lies in SRAM bank c modulo the number of banks, and each
submap begins in bank 0.
"""

from __future__ import annotations

STRIDE = 2
"""The only stride that there is an interleaving for, along both axes."""


def interleaved_channels(channels: int, srams: int) -> int:
    """Return channels of the four submaps, with the gaps between them but not behind the last."""
    rounded = -(-channels // srams) * srams
    return rounded * (STRIDE * STRIDE - 1) + channels
