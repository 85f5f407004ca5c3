"""TOSA's operations: what they take and give, building them, checking them."""

from mizzen.ops.attributes import NanMode, ResizeMode, RoundingMode
from mizzen.ops.builder import Builder
from mizzen.ops.catalog import CHAPTERS, DEFINITIONS
from mizzen.ops.definition import Attribute, Definition, Operand, Row, RuleError, Support
from mizzen.ops.verify import verify

__all__ = [
    "CHAPTERS",
    "DEFINITIONS",
    "Attribute",
    "Builder",
    "Definition",
    "NanMode",
    "Operand",
    "ResizeMode",
    "RoundingMode",
    "Row",
    "RuleError",
    "Support",
    "verify",
]
