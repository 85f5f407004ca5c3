"""How many bytes of its input a pass of the compute engines reads from DRAM.

Ref: Ethos-N driver stack 23.02, the Support Library's estimate of input traffic.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.schedule.plan import divide_up
from mizzen.targets.ethos_n.tensors import DataFormat, Shape


def input_traffic_bytes(
    shape: Shape,
    stripe: Shape,
    weights: Shape,
    weight_format: DataFormat,
    output_stripes_deep: int,
    capabilities: Capabilities,
) -> int:
    """Return the bytes read, neighbours' rows and reloads for further output channels included."""
    streams_h, streams_w, streams_c = (stripe[axis] < shape[axis] for axis in (1, 2, 3))
    if streams_c:
        times = divide_up(weights[3], capabilities.ogs)
    elif (streams_h or streams_w) and weight_format is not DataFormat.HWIM:
        times = output_stripes_deep
    else:
        times = 1
    border_width = stripe[2] if weights[1] > 1 and streams_c else 0
    bordered = weights[0] > 1 and (streams_c or (streams_h and streams_w))
    border_height = capabilities.boundary_stripe_height if bordered else 0
    height = shape[1] + 2 * border_height * ((shape[1] - 1) // stripe[1])
    width = shape[2] + 2 * border_width * ((shape[2] - 1) // stripe[2])
    return times * shape[0] * height * width * shape[3]
