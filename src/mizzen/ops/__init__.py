"""TOSA's operations: what they take and give, building them, checking them.

An operation is a class in the file of its chapter of the specification. Its fields are its
definition, written once: they are typed accessors (``conv.stride``), which pyright checks, and
the rows by which the builder types results, the verifier checks graphs, and patterns, files and
documentation name operands. Kinds that share fields are a family, which is a class too:
``isinstance(operation, Weighted)``. So no code counts operands or spells attributes.

It must not know what operations compute (`mizzen.reference`), nor what a target can; where
a neutral part needs that, it is given `limits` as data.
"""

from mizzen.ops import (
    control_flow,
    data_layout,
    elementwise,
    image,
    reduction,
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
from mizzen.ops.verify import require_valid, verify

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
    "control_flow",
    "data_layout",
    "elementwise",
    "image",
    "reduction",
    "require_valid",
    "tensor",
    "type_conversion",
    "verify",
]
