"""TOSA's operations: what they take and give, building them, checking them."""

from mizzen.ops import (
    activation,
    control_flow,
    data_layout,
    data_node,
    elementwise,
    image,
    reduction,
    scatter_gather,
    tensor,
    type_conversion,
)
from mizzen.ops.builder import Builder
from mizzen.ops.definition import (
    DEFINITIONS,
    Attribute,
    Definition,
    Operand,
    Row,
    RuleError,
    Support,
    TosaOperation,
)
from mizzen.ops.verify import verify

__all__ = [
    "DEFINITIONS",
    "Attribute",
    "Builder",
    "Definition",
    "Operand",
    "Row",
    "RuleError",
    "Support",
    "TosaOperation",
    "activation",
    "control_flow",
    "data_layout",
    "data_node",
    "elementwise",
    "image",
    "reduction",
    "scatter_gather",
    "tensor",
    "type_conversion",
    "verify",
]
