"""Hold the lookup tables of a stream against what the model's operators compute.

A proof's inputs ask for few entries of some tables: most of SOFTMAX's exponentials are too small to
change a rounded result. Here each entry is compared with one that the compiler has no part in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.ethos_u.exponentials import ENTRIES, exponentials
from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.written import FUSED_BEHIND, SAYS_SOMETHING
from mizzen.frontends.tflite import Operator
from mizzen.frontends.tflite.lower import Lowered
from mizzen.ops.elementwise import Table

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

UPPER_BIT = np.uint8(0x80)


def wrong_table(lowered: Lowered, operator: Operator, table: Bytes) -> Difference | None:
    """Return how a table differs from an operator's; None if it does not, or may be another one.

    The table may be of an operator that is computed in the same command, behind this one.
    """
    closest: Difference | None = None
    for expected in _expected(lowered, operator):
        if expected.nbytes != table.nbytes:
            continue
        found = difference(table.view(expected.dtype)[np.newaxis], expected[np.newaxis])
        if found is None:
            return None
        if closest is None or found.share < closest.share:
            closest = found
    return closest if closest is not None and closest.share <= SAYS_SOMETHING else None


def _expected(lowered: Lowered, operator: Operator) -> Iterator[Array]:
    """Return the tables that a command made for an operator may have."""
    main = lowered.model.main
    rows = [operator]
    for _ in range(FUSED_BEHIND):
        for row in rows:
            yield from exponentials(lowered.model, row)
            yield from _functions(lowered, row)
        made = {index for row in rows for index in row.outputs}
        rows = [row for row in main.operators if made & set(row.inputs)]


def _functions(lowered: Lowered, operator: Operator) -> Iterator[Bytes]:
    """Return the function of bytes that an operator computes, by entry; as bytes of either sign."""
    for index in operator.outputs:
        value = lowered.value_of.get(index)
        made = None if value is None else value.producer
        if not isinstance(made, Table) or made.group != operator.index:
            continue
        entries = made.table.constant
        if entries is not None and len(entries) == ENTRIES:
            found = entries.astype(np.int8).view(np.uint8)
            yield found
            yield found ^ UPPER_BIT
