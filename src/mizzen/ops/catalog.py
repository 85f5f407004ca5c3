"""All operations, by kind."""

from __future__ import annotations

from mizzen.ops import (
    activation,
    comparison,
    control_flow,
    custom,
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
    variable,
)
from mizzen.ops.definition import Definition

CHAPTERS = {
    module.__name__.rpartition(".")[2]: module.DEFINITIONS
    for module in (
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
        custom,
        control_flow,
        variable,
        shape,
    )
}
"""Name of the chapter's file to its operations, in TOSA's order."""

DEFINITIONS: dict[str, Definition] = {
    definition.kind: definition for chapter in CHAPTERS.values() for definition in chapter
}
