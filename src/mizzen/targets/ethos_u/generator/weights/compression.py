"""Weights in the order of a stream to bytes: sections are searched, and written."""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.bitstream import write
from mizzen.targets.ethos_u.generator.weights.fast import write_fast
from mizzen.targets.ethos_u.generator.weights.order import StreamOrder
from mizzen.targets.ethos_u.generator.weights.order_u85 import StreamOrderU85
from mizzen.targets.ethos_u.generator.weights.slices import Effort, choose

Order = StreamOrder | StreamOrderU85


class Compression(Enum):
    """How hard it is tried to make streams small; all decode to the same weights."""

    QUICK = "quick"
    FAST = "fast"
    THOROUGH = "thorough"


EFFORTS = {
    Compression.QUICK: Effort(cells=16, long_runs=False, mappings=1, rounds=0),
    Compression.FAST: Effort(cells=512, long_runs=True, mappings=1, rounds=0),
    Compression.THOROUGH: Effort(cells=2048, long_runs=True, mappings=3, rounds=1),
}


def compress(weights: npt.NDArray[np.int16], order: Order, compression: Compression) -> bytes:
    """Return the stream of weights [O, kernel height, kernel width, I], of one at least, in order.

    Its length is a multiple of 16 bytes. A fast stream is not searched for.
    """
    values = np.append(weights.ravel(), np.int16(0))[order.places]
    if isinstance(order, StreamOrderU85) and order.fast:
        return write_fast(values)
    return write(values, choose(values, EFFORTS[compression]))
