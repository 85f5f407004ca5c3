"""The meaning of all operations that work on numbers alone, by kind."""

from __future__ import annotations

from mizzen.reference import (
    activation,
    comparison,
    data_layout,
    data_node,
    elementwise_binary,
    elementwise_ternary,
    elementwise_unary,
    image,
    reduction,
    scatter_gather,
    shape,
    tensor,
    type_conversion,
)
from mizzen.reference.kernel import Kernel

KERNELS: dict[str, Kernel] = {
    kind: kernel
    for chapter in (
        tensor,
        activation,
        elementwise_binary,
        elementwise_unary,
        elementwise_ternary,
        comparison,
        reduction,
        data_layout,
        scatter_gather,
        image,
        type_conversion,
        data_node,
        shape,
    )
    for kind, kernel in chapter.KERNELS.items()
}
