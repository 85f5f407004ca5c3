"""Custom operators. Ref: TOSA 1.0, 2.15."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, TensorType, Value
from mizzen.ops.definition import Attribute, Operand, RuleError, chapter, define


def custom(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Refuse: only who defines the operator knows its results."""
    raise RuleError("the results of a custom operator must be given; they do not follow")


DEFINITIONS = chapter(
    15,
    define(
        "CUSTOM",
        Operand("input_list", "any", variadic=True),
        results=(),
        attributes=(
            Attribute("operator_name", str),
            Attribute("domain_name", str, ""),
            Attribute("implementation_attrs", bytes, b""),
        ),
        infer=custom,
    ),
)
