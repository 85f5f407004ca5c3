"""Which operations there are on which architecture, of which types; rules of arithmetic and axes.

Some rules hold wherever the axes lie in memory, some of what the compiler is given. Mizzen's passes
choose the order of axes and fold strides into channels, so what a network is lowered to may break
the latter and yet be compiled.
"""

from __future__ import annotations

from math import prod

from mizzen.graph import DType, Operation
from mizzen.ops import DEFINITIONS
from mizzen.ops.data_layout import Reverse
from mizzen.ops.elementwise import ArithmeticRightShift
from mizzen.ops.reduction import Reduction
from mizzen.ops.tensor import Argmax, Matmul, Weighted
from mizzen.targets.ethos_u.commands import ALL, U55_U65, U85, Arch
from mizzen.targets.ethos_u.legal.tosa_kernels import STRIDE_MAXIMUM, padded_stride
from mizzen.targets.ethos_u.legal.tosa_rule import (
    CONSTANTS,
    CONVOLUTIONS,
    FOUND,
    WRONG,
    Measure,
    Rule,
    is_fixed,
    kinds,
    rule,
    types_of,
)
from mizzen.targets.rules import extents

ONLY_ON_U85 = kinds(
    "BITWISE_AND BITWISE_NOT BITWISE_OR BITWISE_XOR COND_IF EQUAL GATHER GREATER GREATER_EQUAL "
    "INTDIV LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGICAL_RIGHT_SHIFT LOGICAL_XOR REDUCE_ALL "
    "REDUCE_ANY SCATTER SELECT WHILE_LOOP"
)
"""Operations that U55 and U65 have no form of. Ref: Vela 5.2.0, supported operators of TOSA."""

NOWHERE = kinds("VARIABLE VARIABLE_READ VARIABLE_WRITE")
"""Operations that the compiler takes for no architecture."""

COMPUTING = frozenset(DEFINITIONS) - CONSTANTS - {"CUSTOM"}

REPLACEMENTS = {
    "BITWISE_NOT": "write it as SUB from -1",
    "EQUAL": "compare on 8-bit numbers, which a TABLE of the difference does",
    "GATHER": "with constant indices: SLICE and CONCAT",
    "GREATER": "compare on 8-bit numbers, which a TABLE of the difference does",
    "GREATER_EQUAL": "compare on 8-bit numbers, which a TABLE of the difference does",
    "INTDIV": "by a constant: RESCALE",
    "LOGICAL_RIGHT_SHIFT": "by a constant: RESCALE",
    "SELECT": "by a constant: MUL with ones and zeros, and ADD",
}
"""What to write instead of an operation that U55 and U65 have no form of."""

STATE = "make the variable an input, and what is written to it an output"


def archs_with(kind: str) -> tuple[Arch, ...]:
    """Return the architectures that have a form of an operation, of some types."""
    if kind in NOWHERE:
        return ()
    return tuple(arch for arch in ALL if kind not in ONLY_ON_U85 or arch not in U55_U65)


def replacement(kind: str) -> str:
    """Say what to write instead of an operation that an architecture has no form of."""
    if kind in NOWHERE:
        return STATE
    return REPLACEMENTS.get(kind, "leave it to the CPU, or choose Ethos-U85")


@rule("integers", COMPUTING, ALL).must_have("only integers", "quantise it")
def _real_numbers(operation: Operation) -> str | None:
    found = [each.value for each in types_of(operation) if each.is_float]
    return ", ".join(found) or None


@rule("booleans", COMPUTING - ONLY_ON_U85, U55_U65).must_have(
    "numbers", "use numbers of 8 bits, 0 and 1, or choose Ethos-U85"
)
def _booleans(operation: Operation) -> str | None:
    return DType.BOOL.value if DType.BOOL in types_of(operation) else None


def _first_is(*wanted: DType) -> Measure:
    def measure(operation: Operation) -> str | None:
        found = operation.operand.dtype
        return None if found in wanted or found is DType.BOOL else found.value

    return measure


@rule("rescaled-sums", CONVOLUTIONS, U55_U65).must_have(
    "one RESCALE behind sums of 48 bits", "rescale the sum once, and use the result of that"
)
def _sum_of_48_bits(operation: Operation) -> str | None:
    if operation.results[0].dtype is not DType.INT48:
        return None
    users = [user.kind for user in operation.result.uses]
    if len(users) == 1 and users[0] in ("RESCALE", "IDENTITY"):
        return None
    return f"{' and '.join(users)} behind it" if users else "nothing behind it"


def _dynamic_weights(operation: Weighted) -> str | None:
    values = {"weights": operation.weight, "a bias": operation.bias}
    found = [name for name, value in values.items() if not is_fixed(value)]
    return f"{' and '.join(found)} that inputs decide" if found else None


_EIGHT = "operands of 8 bits"
_TYPES: tuple[tuple[str, str, str, tuple[DType, ...], str], ...] = (
    (
        "shift-type",
        "ARITHMETIC_RIGHT_SHIFT LOGICAL_LEFT_SHIFT",
        "operands of 32 bits",
        (DType.INT32,),
        "cast the operands to 32 bits before, and the result back",
    ),
    (
        "arg-max-type",
        "ARGMAX",
        _EIGHT,
        (DType.INT8,),
        "quantise its input to 8 bits",
    ),
    (
        "matmul-type",
        "MATMUL",
        _EIGHT,
        (DType.INT8,),
        "quantise it to 8 bits, or choose Ethos-U85",
    ),
    (
        "transposed-type",
        "TRANSPOSE_CONV2D",
        _EIGHT,
        (DType.INT8,),
        "quantise it to 8 bits, or choose Ethos-U85",
    ),
    (
        "extreme-type",
        "REDUCE_MAX REDUCE_MIN",
        "operands of 8 or 16 bits",
        (DType.INT8, DType.INT16),
        "rescale the operand to 16 bits before",
    ),
)

FORM_RULES: tuple[Rule, ...] = (
    _real_numbers,
    _booleans,
    *(
        rule(id, kinds(names), U55_U65, FOUND).must_have(limit, help)(_first_is(*wanted))
        for id, names, limit, wanted, help in _TYPES
    ),
    _sum_of_48_bits,
    rule("constant-weights", CONVOLUTIONS - {"TRANSPOSE_CONV2D"}, U55_U65, FOUND).must_have(
        "constant weights and a constant bias",
        "make them constants; a product of two inputs is MATMUL",
    )(_dynamic_weights),
    rule("constant-deep-weights", "CONV3D", U85).must_have(
        "constant weights and a constant bias", "make them constants"
    )(_dynamic_weights),
    rule("constant-transposed-weights", "TRANSPOSE_CONV2D", ALL).must_have(
        "constant weights and a constant bias", "make them constants"
    )(_dynamic_weights),
)
"""Rules of types, and of what must be constant."""


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
