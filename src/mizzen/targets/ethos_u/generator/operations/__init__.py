"""What the NPU is to do, before it is decided how: operations over tensors, and then a schedule.

A `Sequence` holds operations in an order that is right, over tensors that lie nowhere yet. Rules
lower a network to one; rewrites make another of it; a search gives it a `Schedule`: blocks,
layouts, addresses, transfers. What emits words takes the schedule.
All is plain data of U55 and U65, in elements where a name does not say bytes, and says what
registers say: scales are multipliers and shifts, not real numbers.

It must not know networks, costs, nor command words.
"""

from mizzen.targets.ethos_u.generator.operations.items import (
    Blob,
    Blocking,
    Fetch,
    Issue,
    Place,
    Staging,
    WeightPart,
)
from mizzen.targets.ethos_u.generator.operations.maps import (
    BRICK,
    Box,
    Bytes,
    Map,
    Role,
    Shape,
    Tensor,
    Tiles,
)
from mizzen.targets.ethos_u.generator.operations.operations import (
    Activation,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Operation,
    Pooling,
    Scalar,
    Scale,
    Table,
    WrittenWeights,
    maps_read,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.operations.schedule import Schedule
from mizzen.targets.ethos_u.generator.operations.sequence import Sequence

__all__ = [
    "BRICK",
    "Activation",
    "Blob",
    "Blocking",
    "Box",
    "Bytes",
    "ChannelScales",
    "Computation",
    "Convolution",
    "Copy",
    "Elementwise",
    "Fetch",
    "Issue",
    "Kernel",
    "Map",
    "Operation",
    "Place",
    "Pooling",
    "Role",
    "Scalar",
    "Scale",
    "Schedule",
    "Sequence",
    "Shape",
    "Staging",
    "Table",
    "Tensor",
    "Tiles",
    "WeightPart",
    "WrittenWeights",
    "maps_read",
    "tensor_written",
    "tensors_read",
]
