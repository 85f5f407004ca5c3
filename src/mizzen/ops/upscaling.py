"""Which transposed convolutions have another form, for rewriting them and for judging them."""

from __future__ import annotations

from mizzen.graph import DType
from mizzen.ops.tensor import TransposeConv2d
from mizzen.ops.type_conversion import Rescale


def ending_rescale(operation: TransposeConv2d) -> Rescale | None:
    """Return the RESCALE to 8 or 16 bits that alone reads a transposed convolution.

    None where there is another reader, or where a number of either is no constant: it can then be
    no convolution with other channels.
    """
    users = tuple(operation.result.uses)
    if len(users) != 1 or not isinstance(rescale := users[0], Rescale):
        return None
    constants = (*operation.operands[1:], *rescale.operands[1:])
    narrow = rescale.result.dtype in (DType.INT8, DType.INT16)
    return rescale if narrow and all(each.constant is not None for each in constants) else None
