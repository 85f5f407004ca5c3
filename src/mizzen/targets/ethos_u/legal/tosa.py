"""What of TOSA may run on the NPU: the rules, as rows, and what an operation breaks.

First the vocabulary of rows; then rules of what moves over an image (convolution, pooling,
resizing); then which operations there are on which architecture, of which types; then rules of
arithmetic, and of the axes in memory. Rules of axes are about what the compiler is given: Mizzen's
passes choose the order of axes and fold strides into channels, so what a network is lowered to may
break them and yet be compiled. `reasons` is for operations as a front-end gives them and leaves
those rules out; `reasons_as_compiled` has them.

Ref: Vela 5.2.0, ``vela --supported-ops-report``, TOSA. Its texts are neither complete nor always
right: the rows were found by compiling graphs on both sides of each limit, which the tests repeat,
and by running what was compiled.
"""

from __future__ import annotations

from math import prod
from typing import Any

from mizzen.diagnostics import Reason
from mizzen.graph import DType, Operation, ResizeMode, Value
from mizzen.ops import DEFINITIONS
from mizzen.ops.data_layout import Reverse
from mizzen.ops.elementwise import ArithmeticRightShift
from mizzen.ops.image import Resize
from mizzen.ops.limits import WindowLimits
from mizzen.ops.reduction import Reduction
from mizzen.ops.tensor import Argmax, Conv3d, Matmul, Pool2d, TransposeConv2d, Weighted, Windowed
from mizzen.ops.upscaling import ending_rescale
from mizzen.targets import rules
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch
from mizzen.targets.rules import NO_FORM, Table, by, extents, no_form

SOURCE = "Vela 5.2.0, supported operators of TOSA"
FOUND = "Vela 5.2.0 stops at it, found by compiling"
WRONG = "Vela 5.2.0 compiles it wrongly, found by running the result"

CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})
CONVOLUTIONS = frozenset({"CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"})
POOLS = frozenset({"AVG_POOL2D", "MAX_POOL2D"})

FOLDED_STEPS = 8
"""Operations, one after another, through which constants are looked for: graphs are deep."""

Rule = rules.Rule[Any]
"""A row; its measure takes the class of the operations that the row is about."""
Measure = rules.Measure[Operation]


def rule(
    id: str, kinds: str | frozenset[str], archs: tuple[Arch, ...], source: str = SOURCE
) -> rules.Head:
    """Begin a row about operations that a text lists or a set holds."""
    return rules.Head(id, source, rules.listed(kinds), archs)


def kinds(names: str) -> frozenset[str]:
    """Return the operations of a list in a text."""
    return frozenset(names.split())


def is_fixed(value: Value, steps: int = FOLDED_STEPS) -> bool:
    """Whether a value is a constant, or computed from constants only, in not too many steps."""
    producer = value.producer
    if producer is None or producer.kind == "CUSTOM":
        return False
    if producer.kind in CONSTANTS:
        return True
    if not steps or not producer.operands:
        return False
    return all(is_fixed(operand, steps - 1) for operand in producer.operands)


def types_of(operation: Operation) -> list[DType]:
    """Return the element types of operands and results, each once, shapes left out."""
    values = (*operation.operands, *operation.results)
    return [each for each in dict.fromkeys(row.dtype for row in values) if each is not DType.SHAPE]


def numbers(value: Value) -> tuple[int, ...]:
    """Return the elements of a constant; none if it is not one."""
    constant = value.constant
    return () if constant is None else tuple(map(int, constant.reshape(-1)))


PLANE = 2
"""Rows and columns, the last of the axes that a kernel moves along."""

STRIDE_MAXIMUM = 3
PADDED_AVERAGE_KERNEL_MAXIMUM = 8
DEPTH_MAXIMUM = 1 << 16
UPSCALES = (1, 2, 4, 8)
BIAS_BITS = 40
UPSCALE_MAXIMUM = 2
WINDOW_LIMITS = WindowLimits(STRIDE_MAXIMUM, 64, UPSCALE_MAXIMUM)
"""Ref: Vela 5.2.0, ``vela --supported-ops-report``, DEPTHWISE_CONV_2D."""


def padded_stride(operation: Windowed | Pool2d) -> str | None:
    """Say what a stride with padding is, where it is longer than the NPU has."""
    found = _stride(operation)
    padded = any(operation.pad[-2 * PLANE :])
    return f"{found} with padding" if found is not None and padded else None


@rule("dilated-stride", "CONV2D CONV3D", U55_U65).must_have(
    f"strides up to {STRIDE_MAXIMUM}, or no dilation",
    "use a smaller stride and pooling, or no dilation",
)
def _dilated_stride(operation: Windowed) -> str | None:
    dilation = operation.dilation[-PLANE:]
    found = _stride(operation)
    return f"{found} with dilation {by(dilation)}" if found and max(dilation) > 1 else None


def _stride(operation: Windowed | Pool2d) -> str | None:
    stride = operation.stride[-PLANE:]
    return None if max(stride) <= STRIDE_MAXIMUM else f"stride {by(stride)}"


@rule("average-kernel", "AVG_POOL2D", U55_U65).must_have(
    f"a kernel up to {PADDED_AVERAGE_KERNEL_MAXIMUM}x{PADDED_AVERAGE_KERNEL_MAXIMUM}, or no "
    "padding",
    "pool in several steps, or without padding",
)
def _average_kernel(operation: Pool2d) -> str | None:
    kernel = operation.kernel
    if not any(operation.pad) or max(kernel) <= PADDED_AVERAGE_KERNEL_MAXIMUM:
        return None
    return f"a kernel of {by(kernel)} with padding"


@rule("slices", "CONV3D", U55_U65).must_have(
    "a kernel of one slice", "write it as a sum of CONV2D, one for each slice"
)
def _slices(operation: Conv3d) -> str | None:
    depth = operation.weight.shape[1]
    return None if depth == 1 else f"a kernel of {depth} slices"


@rule("transposed-stride", "TRANSPOSE_CONV2D", U55_U65).must_have(
    "strides 1x1 or 2x2, 2 along the only axis that input and kernel have, or more than 2",
    "upscale by 2 in several steps, or with RESIZE and CONV2D",
)
def _transposed_stride(operation: TransposeConv2d) -> str | None:
    stride, data, weight = operation.stride, operation.input.shape, operation.weight.shape
    flat = data[1] == weight[1] == 1 and stride == (1, 2)
    narrow = data[2] == weight[2] == 1 and stride == (2, 1)
    longer = max(stride) > UPSCALE_MAXIMUM and ending_rescale(operation) is not None
    known = stride in ((1, 1), (2, 2)) or flat or narrow or longer
    return None if known else f"stride {by(stride)}"


def longer_upscale(operation: TransposeConv2d) -> str | None:
    """Say what a stride is, where it is longer than the NPU has."""
    stride = operation.stride
    return f"stride {by(stride)}" if max(stride) > UPSCALE_MAXIMUM else None


@rule("transposed-padding", "TRANSPOSE_CONV2D", U55_U65, WRONG).must_have(
    "no output padding at top or left", "pad its result, or at bottom and right only"
)
def _output_padding(operation: TransposeConv2d) -> str | None:
    top, _, left, _ = operation.out_pad
    found = [f"{size} at the {side}" for side, size in (("top", top), ("left", left)) if size > 0]
    return f"padding of {' and '.join(found)}" if found else None


@rule("depth", CONVOLUTIONS | POOLS, ALL).must_have(
    f"up to {DEPTH_MAXIMUM} channels", "split the channels"
)
def _depth(operation: Weighted | Pool2d) -> str | None:
    depth = operation.input.shape[-1]
    return None if depth <= DEPTH_MAXIMUM else f"{depth} channels"


@rule("bias", CONVOLUTIONS, U55_U65, WRONG).must_have(
    f"a bias of {BIAS_BITS} bits",
    "quantise with greater scales; the bias takes those of input and weights",
)
def _bias(operation: Weighted) -> str | None:
    limit = 1 << (BIAS_BITS - 1)
    bias = operation.bias.constant
    if bias is None or not bias.size:
        return None
    least, greatest = int(bias.min()), int(bias.max())
    if -limit <= least and greatest < limit:
        return None
    return f"a bias of {greatest if greatest >= limit else least}"


@rule("resize", "RESIZE", U55_U65, FOUND).must_have(
    "the nearest pixel, by 2, 4 or 8, corners or centres in place",
    "upscale by 2, 4 or 8 to the nearest pixel, or choose Ethos-U85",
)
def _resize(operation: Resize) -> str | None:
    data, steps = operation.input, numbers(operation.scale)
    if steps == (1, 1, 1, 1) and data.shape == operation.result.shape:
        return None
    if operation.mode is ResizeMode.BILINEAR:
        return "bilinear interpolation"
    if data.shape[1:3] == (1, 1):
        return None
    factors = _factors(operation)
    if factors == (1, 1) or all(factor in UPSCALES[1:] for factor in factors):
        return None
    if None not in factors:
        return f"a factor of {by(factors)}"
    offset, border = numbers(operation.offset), numbers(operation.border)
    return f"scale {steps}, offset {offset}, border {border}"


def _factors(operation: Resize) -> tuple[int | None, ...]:
    """Return the whole factors of both axes, as far as there are such."""
    scale, offset, border = map(numbers, (operation.scale, operation.offset, operation.border))
    axes = zip(scale[::2], scale[1::2], offset, border, strict=True)
    return tuple(_factor(*axis) for axis in axes)


@rule("resize-factors", "RESIZE", U55_U65, WRONG).must_have(
    "the same factor in both directions",
    "upscale by the same factor in both directions, in several steps if need be",
)
def _unequal_factors(operation: Resize) -> str | None:
    if operation.mode is ResizeMode.BILINEAR or operation.input.shape[1:3] == (1, 1):
        return None
    factors = _factors(operation)
    if factors[0] == factors[1] or any(factor not in UPSCALES for factor in factors):
        return None
    return f"a factor of {by(factors)}"


def _factor(numerator: int, denominator: int, offset: int, border: int) -> int | None:
    """Return the whole factor of an axis whose corners or centres meet; else None."""
    factor, rest = divmod(numerator, denominator)
    corners = denominator == 1 and (offset, border) == (0, 0)
    centres = denominator == 2 and (offset, border) == (1 - factor, factor - 1)
    return factor if not rest and (corners or centres) else None


KERNEL_RULES: tuple[Rule, ...] = (
    rule("stride", kinds("CONV3D") | POOLS, U55_U65).must_have(
        f"strides up to {STRIDE_MAXIMUM}, or no padding",
        "use a smaller stride, or pool without padding",
    )(padded_stride),
    _dilated_stride,
    rule("depthwise-stride", "DEPTHWISE_CONV2D", U55_U65, FOUND).must_have(
        f"strides up to {STRIDE_MAXIMUM}", "use a smaller stride and pooling"
    )(_stride),
    _average_kernel,
    _slices,
    _transposed_stride,
    _output_padding,
    _depth,
    _bias,
    _resize,
    _unequal_factors,
)
"""Rules of convolution, pooling and resizing."""


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
    rule("long-transposed-stride", "TRANSPOSE_CONV2D", U55_U65).must_have(
        f"strides up to {UPSCALE_MAXIMUM}",
        "upscale by 2 in several steps, or with RESIZE and CONV2D",
    )(longer_upscale),
    _not_last,
    rule("arg-max-images", "ARGMAX", U55_U65).must_have("one image", "split the batch")(_images),
    _last,
    _around,
)
"""Rules that passes see to."""


RULES: tuple[Rule, ...] = (*FORM_RULES, *KERNEL_RULES, *ARITHMETIC_RULES)
"""Rules that hold whatever the order of axes, in the order in which breaches are told."""

SENTENCE = "{kind} must have {limit} on {on}, and has {actual}"
TABLE = Table[Any](RULES, SENTENCE)
LAYOUT_TABLE = Table[Any](LAYOUT_RULES, SENTENCE)

__all__ = [
    "LAYOUT_RULES",
    "NO_FORM",
    "RULES",
    "Rule",
    "archs_with",
    "defects",
    "reasons",
    "reasons_as_compiled",
]


def reasons(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return what keeps an operation from an architecture, whatever the order of its axes.

    Empty where it may run there. Operations on constants only are not for the NPU: they are
    computed before. CUSTOM operations have their own reasons, from whoever made them.
    """
    if operation.kind == "CUSTOM" or _is_computed_before(operation):
        return ()
    kind = operation.kind
    if arch not in archs_with(kind):
        return (no_form(kind, arch, archs_with(kind), replacement(kind), SOURCE),)
    return tuple(TABLE.reasons(operation, kind, arch))


def reasons_as_compiled(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return what keeps an operation from an architecture in the order of axes that it has."""
    found = reasons(operation, arch)
    if found or _is_computed_before(operation):
        return found
    return tuple(LAYOUT_TABLE.reasons(operation, operation.kind, arch))


def defects(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return the broken rules that the compiler does not know: it would compile a wrong answer."""
    return tuple(row for row in reasons_as_compiled(operation, arch) if row.source == WRONG)


def _is_computed_before(operation: Operation) -> bool:
    if operation.kind in CONSTANTS:
        return True
    return bool(operation.operands) and all(map(is_fixed, operation.operands))
