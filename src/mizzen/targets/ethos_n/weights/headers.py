"""What the header of an output feature map (OFM) says besides how its weights are coded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.weights import format as form
from mizzen.targets.ethos_n.weights.symbols import Array, Flags, Numbers


@dataclass(frozen=True, slots=True)
class OutputScale:
    """What becomes of accumulators: (accumulator * multiplier >> shift) + zero point.

    multipliers  16 bits: one, or one for each OFM
    shifts       6 bits, as many
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class OfmHeaders:
    """The fields of several headers, as unsigned numbers.

    scale_follows  whether multiplier, shift and zero point are sent
    """

    bias: Numbers
    multiplier: Numbers
    shift: Numbers
    zero_point: Numbers
    scale_follows: Flags

    def part(self, chosen: slice | Numbers) -> OfmHeaders:
        """Return the chosen headers."""
        return OfmHeaders(
            self.bias[chosen],
            self.multiplier[chosen],
            self.shift[chosen],
            self.zero_point[chosen],
            self.scale_follows[chosen],
        )


def ofm_headers(ofms: int, ogs: int, bias: Array, scale: OutputScale) -> OfmHeaders:
    """Make the headers of all OFMs, of which `ogs` are made at a time.

    E940 for another number of biases or scales, E942 for a number too large for its field.
    """
    count = len(scale.multipliers)
    if bias.shape != (ofms,) or count not in (1, ofms) or count != len(scale.shifts):
        raise fail(
            "E940",
            f"there must be {ofms} biases, and 1 or {ofms} multipliers and shifts; there are "
            f"{bias.size}, {count} and {len(scale.shifts)}",
        )
    low, high = -(1 << (form.BIAS - 1)), 1 << (form.BIAS - 1)
    _require("bias", bias, low, high - 1)
    _require("multiplier", np.array(scale.multipliers), 0, (1 << form.MULTIPLIER) - 1)
    _require("shift", np.array(scale.shifts), 0, (1 << form.SHIFT) - 1)
    # Signed or unsigned, as the output is.
    zero_byte = 1 << form.ZERO_POINT
    _require("zero point", np.array([scale.zero_point]), -zero_byte // 2, zero_byte - 1)
    # A generator keeps its scale, which is that of all OFMs unless each has its own.
    each_its_own = count > 1
    return OfmHeaders(
        bias=bias.astype(np.int64) % (2 * high),
        multiplier=np.broadcast_to(np.array(scale.multipliers), ofms),
        shift=np.broadcast_to(np.array(scale.shifts), ofms),
        zero_point=np.full(ofms, scale.zero_point % zero_byte),
        scale_follows=np.logical_or(each_its_own, np.arange(ofms) < ogs),
    )


def _require(what: str, values: Array, least: int, most: int) -> None:
    bad = values[(values < least) | (values > most)]
    if bad.size:
        raise fail("E942", f"a {what} must be {least} to {most}, not {bad[0]}")
