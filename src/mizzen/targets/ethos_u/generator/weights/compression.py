"""Weights in the order of a stream to bytes: Arm's encoder, or a search of our own."""

from __future__ import annotations

from enum import Enum
from importlib import import_module

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.bitstream import write
from mizzen.targets.ethos_u.generator.weights.order import (
    IFM_MICROBLOCK,
    WINDOW,
    StreamOrder,
    places,
)
from mizzen.targets.ethos_u.generator.weights.slices import Effort, choose

ALIGNMENT_BYTES = 16
"""Of the length of a stream."""


class Compression(Enum):
    """How hard it is tried to make streams small; all decode to the same weights.

    QUICK is the encoder of `ethosu.mlw_codec`. The others search for sections, and take the
    smaller stream of both.
    """

    QUICK = "quick"
    FAST = "fast"
    THOROUGH = "thorough"


EFFORTS = {
    Compression.FAST: Effort(cells=512, mappings=1, rounds=0),
    Compression.THOROUGH: Effort(cells=2048, mappings=3, rounds=1),
}


def compress(
    weights: npt.NDArray[np.int16],
    order: StreamOrder,
    compression: Compression,
    quick: bytes | None = None,
) -> bytes:
    """Return the stream of one core's weights [O, kernel height, kernel width, I], of one at least.

    quick  the stream of the least effort, if it is known

    Its length is a multiple of `ALIGNMENT_BYTES`.
    """
    quick = _quick(weights, order) if quick is None else quick
    if compression is Compression.QUICK:
        return quick
    values = np.append(weights.ravel(), np.int16(0))[places(order)]
    sections = choose(values, EFFORTS[compression], 8 * (len(quick) - ALIGNMENT_BYTES))
    return quick if sections is None else min(quick, write(values, sections), key=len)


def _quick(weights: npt.NDArray[np.int16], order: StreamOrder) -> bytes:
    stream, _ = import_module("ethosu.mlw_codec").reorder_encode(
        IFM_MICROBLOCK,
        order.microblock,
        np.ascontiguousarray(weights, np.int16),
        order.block_depth,
        order.depthwise,
        order.part_kernel,
        order.ifm_bits,
        WINDOW // order.dilation[0],
        WINDOW // order.dilation[1],
    )
    return bytes(stream)
