"""The operators of PyTorch, one row for those that are treated alike, whatever asks.

A row has what quantisation makes of an operator, what takes it apart before calibration, and its
lowerings to integers and to floating-point numbers; what it has not, it says why. So the quantiser
cannot make integers of what the lowering does not know, and users are told the same everywhere.

Rows name functions and import none of them: the table is read without PyTorch, and a compilation
loads the lowerings of the operators that it meets. It must not know who reads it.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

from mizzen.frontends.torch.operators.row import Missing, Operator, Range, Role
from mizzen.frontends.torch.operators.rows import ELEMENTWISE, LAYERS, MOVEMENT, REFUSED

__all__ = [
    "OPERATORS",
    "TABLES",
    "Missing",
    "Operator",
    "Range",
    "Role",
    "functional_name",
    "overload_of",
    "row_of",
]

LIBRARIES = ("mizzen",)
TABLES: tuple[tuple[Operator, ...], ...] = (ELEMENTWISE, MOVEMENT, LAYERS, REFUSED)

OPERATORS: dict[str, Operator] = {
    name if name.partition(".")[0] in LIBRARIES else f"aten.{name}": operator
    for operator in chain(*TABLES)
    for name in operator.overloads
}
"""Name with library and overload, ``aten.add.Tensor``, to its row."""


@cache
def functional_name(name: str) -> str:
    """Return the operator that gives a new tensor, ``aten.relu.default`` for ``aten.relu_``.

    One that copies what another gives a view of is that other one.
    """
    if name in OPERATORS or not name.startswith("aten."):
        return name
    space, operator, *overload = name.split(".")
    short = operator.removesuffix("_copy") if operator.endswith("_copy") else in_place(operator)
    return ".".join((space, short, *overload))


def in_place(operator: str) -> str:
    """Return an operator's name without what says that it works in place."""
    return operator if operator.endswith("__") else operator.removesuffix("_")


def overload_of(node: Any) -> str:
    """Return an FX node's operator with its overload, ``aten.add.Tensor``, in functional form."""
    return functional_name(str(node.target))


def row_of(node: Any) -> Operator | None:
    """Return the row of an FX node's operator."""
    return OPERATORS.get(overload_of(node))
