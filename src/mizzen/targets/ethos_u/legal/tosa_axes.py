"""Rules of arithmetic, element by element and over axes, wherever the axes lie in memory.

Then those of what the compiler is given. Mizzen's passes choose the order of axes and fold strides
into channels, so what a network is lowered to may break them and yet be compiled.
"""

from __future__ import annotations

from math import prod

from mizzen.graph import Operation
from mizzen.ops.data_layout import Reverse
from mizzen.ops.elementwise import ArithmeticRightShift
from mizzen.ops.reduction import Reduction
from mizzen.ops.tensor import Argmax, Matmul
from mizzen.targets.ethos_u.commands import U55_U65
from mizzen.targets.ethos_u.legal.tosa_kernels import STRIDE_MAXIMUM, padded_stride
from mizzen.targets.ethos_u.legal.tosa_rule import WRONG, Rule, kinds, rule
from mizzen.targets.rules import extents

ARG_MAX_EXTENT_MAXIMUM = 127
EXTENT_MAXIMUM = 1 << 16
BROADCAST_RANK_MAXIMUM = 4

ELEMENTWISE = kinds("ADD ARITHMETIC_RIGHT_SHIFT LOGICAL_LEFT_SHIFT MAXIMUM MINIMUM MUL SUB")


@rule("shift-rounding", "ARITHMETIC_RIGHT_SHIFT", U55_U65, WRONG).must_have(
    "rounding", "let it round, or choose Ethos-U85"
)
def _truncating(operation: ArithmeticRightShift) -> str | None:
    return None if operation.round else "round=False"


@rule("arg-max-extent", "ARGMAX", U55_U65).must_have(
    f"up to {ARG_MAX_EXTENT_MAXIMUM} elements along its axis",
    "give all numbers, and look for the greatest outside",
)
def _extent(operation: Argmax) -> str | None:
    extent = operation.input.shape[operation.axis]
    return None if extent <= ARG_MAX_EXTENT_MAXIMUM else f"{extent} along it"


@rule("matmul-rows", "MATMUL", U55_U65, WRONG).must_have(
    f"up to {EXTENT_MAXIMUM} rows", "split the product"
)
def _rows(operation: Matmul) -> str | None:
    rows = operation.A.shape[1]
    return f"{rows} rows" if rows > EXTENT_MAXIMUM else None


@rule("matmul-extents", "MATMUL", U55_U65).must_have(
    f"up to {EXTENT_MAXIMUM} terms and columns", "split the product"
)
def _terms_and_columns(operation: Matmul) -> str | None:
    _, terms, columns = operation.B.shape
    sizes = {"terms": terms, "columns": columns}
    found = [f"{size} {name}" for name, size in sizes.items() if size > EXTENT_MAXIMUM]
    return " and ".join(found) or None


@rule("broadcast-first", ELEMENTWISE, U55_U65, WRONG).must_have(
    f"the larger operand first where the rank is over {BROADCAST_RANK_MAXIMUM}",
    "swap the operands, or reshape both to a smaller rank",
)
def _single_first(operation: Operation) -> str | None:
    first, result = operation.operand.shape, operation.result.shape
    if prod(first) > 1 or len(result) <= BROADCAST_RANK_MAXIMUM:
        return None
    if sum(extent > 1 for extent in result) <= 1:
        return None  # a row, whatever its rank
    return f"one number first, for a result of rank {len(result)}"


ARITHMETIC_RULES: tuple[Rule, ...] = (
    _truncating,
    _extent,
    _terms_and_columns,
    _rows,
    _single_first,
)
"""Rules of arithmetic."""


PRODUCT_MAXIMUM = 1 << 16


@rule("arg-max-axis", "ARGMAX", U55_U65).must_have("the last axis", "transpose its input")
def _not_last(operation: Argmax) -> str | None:
    axis, rank = operation.axis, operation.input.type.rank
    return None if axis == rank - 1 else f"axis {axis} of {rank}"


def _images(operation: Operation) -> str | None:
    images = prod(operation.operand.shape[:-3])
    return None if images == 1 else f"{images} images"


@rule("reverse-axis", "REVERSE", U55_U65).must_have(
    "another axis than the last", "transpose its input"
)
def _last(operation: Reverse) -> str | None:
    shape, axis = operation.result.shape, operation.axis
    # Of several images the axes are moved, so that the last is another for the compiler.
    return "the last axis" if axis == len(shape) - 1 and _images(operation) is None else None


@rule("sum-extents", "REDUCE_SUM", U55_U65).must_have(
    f"up to {PRODUCT_MAXIMUM} elements along, before and behind its axis, or the last axis",
    "sum along the last axis, or in parts",
)
def _around(operation: Reduction) -> str | None:
    shape, axis = operation.input.shape, operation.axis
    if axis == len(shape) - 1:
        return None
    found = max(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    return None if found <= PRODUCT_MAXIMUM else f"{extents(shape)} along axis {axis}"


LAYOUT_RULES: tuple[Rule, ...] = (
    rule("padded-stride", "CONV2D", U55_U65).must_have(
        f"strides up to {STRIDE_MAXIMUM}, or no padding",
        "use a smaller stride and pooling, or no padding",
    )(padded_stride),
    _not_last,
    rule("arg-max-images", "ARGMAX", U55_U65).must_have("one image", "split the batch")(_images),
    _last,
    _around,
)
"""Rules that passes see to."""
