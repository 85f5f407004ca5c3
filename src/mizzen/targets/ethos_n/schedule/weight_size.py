"""The largest size that a stripe of weights can have when it is encoded.

Ref: Ethos-N driver stack 23.02, the Support Library's weight size estimate; specification of the
compute engine 6.8.6.3 as cited there.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.schedule.plan import divide_up, round_up
from mizzen.targets.ethos_n.tensors import DataFormat, Shape

PAYLOAD_HEADER_BYTES = divide_up(17 + 1 + 3 + 3 + 1 + 1 + 5 + 5 + 3 + 32 * 9, 8)
"""Symbol count, compression parameters and a full palette of 32 entries of 9 bits."""
CHANNEL_HEADER_BYTES = 14
"""Length, bias, scale and shift, with the rest of what stands before a channel's weights."""
STREAM_MULTIPLE_BYTES = 16


def largest_weight_bytes(shape: Shape, format: DataFormat, capabilities: Capabilities) -> int:
    """Return the bytes of weights of `shape` if nothing of them can be compressed."""
    height, width, inputs, outputs = shape
    if format is DataFormat.HWIM:
        lanes, outputs = capabilities.srams, outputs * inputs
        weights = height * width * (1 + capabilities.srams // 8)
    else:
        lanes = capabilities.ogs
        weights = height * width * round_up(inputs, capabilities.igs)
    channel = divide_up(9 * weights, 8) + PAYLOAD_HEADER_BYTES + CHANNEL_HEADER_BYTES
    return round_up(channel * divide_up(outputs, lanes), STREAM_MULTIPLE_BYTES) * lanes
