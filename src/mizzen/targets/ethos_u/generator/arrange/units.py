"""What leaves a number as it is: scales of one, bounds of all that a type holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import Activation, ChannelScales

ONE_BITS = 30
"""Of a multiplier of one and its shift: what is scaled comes out as it is, however rounded."""


def identity_scales(channels: int, biases: npt.NDArray[np.int64] | None = None) -> ChannelScales:
    """Return scales of one, and biases, of zero if none are given."""
    return ChannelScales(
        np.zeros(channels, np.int64) if biases is None else biases,
        np.full(channels, 1 << ONE_BITS, np.int64),
        np.full(channels, ONE_BITS, np.int64),
    )


def whole_range(dtype: np.dtype[np.integer[Any]]) -> Activation:
    """Return an activation that clips to what a type holds, of 16 bits at most."""
    info = np.iinfo(dtype)
    return Activation(int(info.min), int(info.max))
