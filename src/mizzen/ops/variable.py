"""Variables: tensors that last from one execution to the next. Ref: TOSA 1.0, 2.17.

TOSA bounds their element types to i8, f16 and f32; as its own tools do, this allows every type
that a constant has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.graph import Attributes, TensorType, Value
from mizzen.ops.definition import Attribute, Operand, Support, chapter, define


def declare(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Return no result."""
    return ()


def read(operands: Sequence[Value], attributes: Attributes) -> tuple[TensorType, ...]:
    """Return the type that the reader says the variable has."""
    return (attributes["type"],)


NAME = Attribute("name", str)
TYPE = Attribute("type", TensorType)

DEFINITIONS = chapter(
    17,
    define(
        "VARIABLE",
        results=(),
        attributes=(NAME, TYPE, Attribute("initial", (np.ndarray, type(None)), None)),
        infer=declare,
        supports=(Support.EXT_VARIABLE,),
    ),
    define(
        "VARIABLE_WRITE",
        Operand("input1", "any"),
        results=(),
        attributes=(NAME,),
        infer=declare,
        supports=(Support.EXT_VARIABLE,),
    ),
    define(
        "VARIABLE_READ",
        results=(("output1", "any"),),
        attributes=(NAME, TYPE),
        infer=read,
        supports=(Support.EXT_VARIABLE,),
    ),
)
