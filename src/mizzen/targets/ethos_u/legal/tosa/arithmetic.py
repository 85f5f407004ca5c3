"""Rules of arithmetic, element by element and over axes, wherever the axes lie in memory."""

from __future__ import annotations

from math import prod

from mizzen.graph import Operation
from mizzen.targets.ethos_u.commands import U55_U65
from mizzen.targets.ethos_u.legal.tosa.rule import WRONG, Rule, kinds

ARG_MAX_EXTENT_MAXIMUM = 127
EXTENT_MAXIMUM = 1 << 16
BROADCAST_RANK_MAXIMUM = 4

ELEMENTWISE = kinds("ADD ARITHMETIC_RIGHT_SHIFT LOGICAL_LEFT_SHIFT MAXIMUM MINIMUM MUL SUB")


def _truncating(operation: Operation) -> str | None:
    return None if operation["round"] else "round=False"


def _extent(operation: Operation) -> str | None:
    axis: int = operation["axis"]
    extent = operation.operands[0].shape[axis]
    return None if extent <= ARG_MAX_EXTENT_MAXIMUM else f"{extent} along it"


def _rows(operation: Operation) -> str | None:
    rows = operation.operands[0].shape[1]
    return f"{rows} rows" if rows > EXTENT_MAXIMUM else None


def _terms_and_columns(operation: Operation) -> str | None:
    _, terms, columns = operation.operands[1].shape
    sizes = {"terms": terms, "columns": columns}
    found = [f"{size} {name}" for name, size in sizes.items() if size > EXTENT_MAXIMUM]
    return " and ".join(found) or None


def _single_first(operation: Operation) -> str | None:
    first, result = operation.operands[0].shape, operation.result.shape
    if prod(first) > 1 or len(result) <= BROADCAST_RANK_MAXIMUM:
        return None
    if sum(extent > 1 for extent in result) <= 1:
        return None  # a row, whatever its rank
    return f"one number first, for a result of rank {len(result)}"


ARITHMETIC_RULES: tuple[Rule, ...] = (
    Rule(
        "shift-rounding",
        kinds("ARITHMETIC_RIGHT_SHIFT"),
        U55_U65,
        "rounding",
        _truncating,
        "let it round, or choose Ethos-U85",
        WRONG,
    ),
    Rule(
        "arg-max-extent",
        kinds("ARGMAX"),
        U55_U65,
        f"up to {ARG_MAX_EXTENT_MAXIMUM} elements along its axis",
        _extent,
        "give all numbers, and look for the greatest outside",
    ),
    Rule(
        "matmul-extents",
        kinds("MATMUL"),
        U55_U65,
        f"up to {EXTENT_MAXIMUM} terms and columns",
        _terms_and_columns,
        "split the product",
    ),
    Rule(
        "matmul-rows",
        kinds("MATMUL"),
        U55_U65,
        f"up to {EXTENT_MAXIMUM} rows",
        _rows,
        "split the product",
        WRONG,
    ),
    Rule(
        "broadcast-first",
        ELEMENTWISE,
        U55_U65,
        f"the larger operand first where the rank is over {BROADCAST_RANK_MAXIMUM}",
        _single_first,
        "swap the operands, or reshape both to a smaller rank",
        WRONG,
    ),
)
"""Rules of arithmetic."""
