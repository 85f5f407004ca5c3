"""What the NPU is to do, before it is decided how: operations over tensors, and then a schedule.

A `Sequence` holds operations in an order that is right, over tensors that lie nowhere yet. Rules
lower a network to one; rewrites make another of it; a search gives it a `Schedule`: blocks,
layouts, addresses, transfers. What emits words takes the schedule.
All is plain data, in elements where a name does not say bytes, and says what
registers say: scales are multipliers and shifts, not real numbers. Operations that only U85 has are
among them, and fields that it alone heeds, such as the order in which a result is stored; on other
machines these are as they are by default.

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
    AS_COMPUTED,
    PERMUTATIONS,
    Activation,
    Blockwise,
    Chain,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Lines,
    MatrixProduct,
    OperandScale,
    Operation,
    Order,
    Pooling,
    Resize,
    Rounding,
    Scalar,
    Scale,
    Steps,
    Table,
    WrittenWeights,
    convolution_of,
    links_of,
    maps_read,
    tensor_written,
    tensors_read,
    views_read,
    with_maps,
)
from mizzen.targets.ethos_u.generator.operations.planes import Planes, as_box, as_bytes
from mizzen.targets.ethos_u.generator.operations.schedule import Schedule
from mizzen.targets.ethos_u.generator.operations.sequence import (
    Changes,
    Sequence,
    replaced,
    rewritten,
)
from mizzen.targets.ethos_u.generator.operations.sparsity import is_sparse

__all__ = [
    "AS_COMPUTED",
    "BRICK",
    "PERMUTATIONS",
    "Activation",
    "Blob",
    "Blocking",
    "Blockwise",
    "Box",
    "Bytes",
    "Chain",
    "Changes",
    "ChannelScales",
    "Computation",
    "Convolution",
    "Copy",
    "Elementwise",
    "Fetch",
    "Issue",
    "Kernel",
    "Lines",
    "Map",
    "MatrixProduct",
    "OperandScale",
    "Operation",
    "Order",
    "Place",
    "Planes",
    "Pooling",
    "Resize",
    "Role",
    "Rounding",
    "Scalar",
    "Scale",
    "Schedule",
    "Sequence",
    "Shape",
    "Staging",
    "Steps",
    "Table",
    "Tensor",
    "Tiles",
    "WeightPart",
    "WrittenWeights",
    "as_box",
    "as_bytes",
    "convolution_of",
    "is_sparse",
    "links_of",
    "maps_read",
    "replaced",
    "rewritten",
    "tensor_written",
    "tensors_read",
    "views_read",
    "with_maps",
]
