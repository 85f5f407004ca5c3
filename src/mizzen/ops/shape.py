"""Shape operators. Ref: TOSA 1.0, 2.18."""

from __future__ import annotations

import numpy as np

from mizzen.ops.data_node import const
from mizzen.ops.definition import Attribute, chapter, define, table

DEFINITIONS = chapter(
    18,
    define(
        "CONST_SHAPE",
        results=(("output", "out_t"),),
        attributes=(Attribute("values", np.ndarray),),
        rows=table("out_t", "PRO-INT/PRO-FP shape"),
        shapes=const,
    ),
)
