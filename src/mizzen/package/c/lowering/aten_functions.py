"""PyTorch's functions of single elements that are several of the runtime's kernels, and writes to
parts of a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mizzen.package.c.layout import Binary, Reduction, Unary
from mizzen.package.c.lowering.context import Given, Rule, ref
from mizzen.package.c.lowering.elementwise import emit_binary, emit_select
from mizzen.package.c.lowering.movement import same_elements
from mizzen.package.c.lowering.reduction import reduce_axes, take_along
from mizzen.package.c.lowering.strides import View, copy, dense, fill, move, whole

FLOAT = np.dtype(np.float32)


class _Chain:
    """A real number's way through several kernels."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.source = given.tensor("self")
        self.shape = given.row(self.source).shape
        given.must(given.row(self.source).dtype == FLOAT, "numbers must be float32")

    def number(self, value: float) -> int:
        """Return a constant."""
        return self.given.lowering.constant(value, FLOAT)

    def unary(self, operation: Unary, index: int) -> int:
        """Return a function of a tensor."""
        target = self.given.lowering.temporary(self.shape, FLOAT)
        self.given.emit("unary", (int(operation), ref(index)), (target,))
        return target

    def binary(self, operation: Binary, one: int, other: int | float) -> int:
        """Return a function of a tensor, and another or a number."""
        dtype = np.dtype(np.bool_) if _compares(operation) else FLOAT
        target = self.given.lowering.temporary(self.shape, dtype)
        held = self.number(other) if isinstance(other, float) else other
        emit_binary(self.given, operation, one, held, target)
        return target

    def end(self, operation: Binary, one: int, other: int | float) -> None:
        """Write the last function to the output."""
        held = self.number(other) if isinstance(other, float) else other
        emit_binary(self.given, operation, one, held, self.given.output())


def _compares(operation: Binary) -> bool:
    return Binary.EQUAL <= operation <= Binary.GREATER_EQUAL


def gelu(given: Given) -> None:
    """gelu: by the error function, or by the tangent that comes close to it."""
    chain = _Chain(given)
    x = chain.source
    if given.get("approximate", "none") == "none":
        bent = chain.unary(Unary.ERROR_FUNCTION, chain.binary(Binary.MULTIPLY, x, math.sqrt(0.5)))
    else:
        cube = chain.binary(Binary.MULTIPLY, chain.binary(Binary.MULTIPLY, x, x), x)
        inner = chain.binary(Binary.ADD, x, chain.binary(Binary.MULTIPLY, cube, 0.044715))
        scaled = chain.binary(Binary.MULTIPLY, inner, math.sqrt(2 / math.pi))
        bent = chain.unary(Unary.TANH, scaled)
    gate = chain.binary(Binary.ADD, bent, 1.0)
    chain.end(Binary.MULTIPLY, chain.binary(Binary.MULTIPLY, x, 0.5), gate)


def elu(given: Given) -> None:
    """elu, and what is made of it."""
    chain = _Chain(given)
    x = chain.source
    scale = given.real("scale", 1.0)
    curve = chain.unary(
        Unary.EXPONENTIAL_LESS_ONE,
        chain.binary(Binary.MULTIPLY, x, given.real("input_scale", 1.0)),
    )
    below = chain.binary(Binary.MULTIPLY, curve, given.real("alpha", 1.0) * scale)
    above = chain.binary(Binary.MULTIPLY, x, scale)
    emit_select(given, chain.binary(Binary.GREATER, x, 0.0), above, below)


def leaky(given: Given) -> None:
    """leaky_relu."""
    chain = _Chain(given)
    below = chain.binary(Binary.MULTIPLY, chain.source, given.real("negative_slope", 0.01))
    emit_select(given, chain.binary(Binary.GREATER, chain.source, 0.0), chain.source, below)


def power(given: Given) -> None:
    """pow with an exponent that multiplications and roots make."""
    chain = _Chain(given)
    x, exponent = chain.source, given.real("exponent")
    match exponent:
        case 1.0:
            copy(given, x, given.output())
        case 2.0:
            chain.end(Binary.MULTIPLY, x, x)
        case 3.0:
            chain.end(Binary.MULTIPLY, chain.binary(Binary.MULTIPLY, x, x), x)
        case 0.5:
            given.emit("unary", (int(Unary.SQUARE_ROOT), ref(x)), (given.output(),))
        case -0.5:
            given.emit("unary", (int(Unary.INVERSE_SQUARE_ROOT), ref(x)), (given.output(),))
        case -1.0:
            given.emit("unary", (int(Unary.RECIPROCAL), ref(x)), (given.output(),))
        case -2.0:
            square = chain.binary(Binary.MULTIPLY, x, x)
            given.emit("unary", (int(Unary.RECIPROCAL), ref(square)), (given.output(),))
        case _:
            raise given.refused(f"the exponent must be 1, 2, 3, 0.5 or the same below 0, and "
                                f"is {exponent:g}")  # fmt: skip


def unknown(given: Given) -> None:
    """isnan."""
    chain = _Chain(given)
    chain.end(Binary.NOT_EQUAL, chain.source, chain.source)


def infinite(given: Given) -> None:
    """isinf."""
    chain = _Chain(given)
    chain.end(Binary.EQUAL, chain.unary(Unary.ABSOLUTE, chain.source), math.inf)


def modulo(operation: Binary) -> Rule:
    """Return the rule of what is left of a division of integers."""

    def rule(given: Given) -> None:
        tensor = given.row(given.output())
        given.must(tensor.dtype.kind in "iu", "numbers must be integers")
        operands: list[int] = []
        for name in ("self", "other"):
            argument = given.arguments.get(name)
            constant = isinstance(argument, int)
            operands.append(given.lowering.constant(given.whole(name), tensor.dtype) if constant
                            else given.tensor(name))  # fmt: skip
        emit_binary(given, operation, operands[0], operands[1], given.output())

    return rule


def variance(given: Given) -> None:
    """var: squares of what is left of the mean, over one less, or as said."""
    chain = _Chain(given)
    rank = len(chain.shape)
    named = given.arguments.get("dim")
    axes = range(rank) if named in (None, ()) else [axis % rank for axis in given.wholes("dim")]
    count = math.prod(chain.shape[axis] for axis in axes)
    correction = given.get("correction", 1)
    divisor = count - (correction if isinstance(correction, int | float) else 1)
    given.must(divisor > 0, "there must be more elements than the correction")
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(chain.shape))
    mean = given.lowering.temporary(kept, FLOAT)
    reduce_axes(given, Reduction.MEAN, chain.source, list(axes), mean)
    squares = chain.binary(Binary.SQUARED_DIFFERENCE, chain.source, mean)
    total = given.lowering.temporary(given.row(given.output()).shape, FLOAT)
    reduce_axes(given, Reduction.SUM, squares, list(axes), total)
    chain.end(Binary.DIVIDE, total, float(divisor))


def replaced(given: Given) -> None:
    """select_scatter and slice_scatter: a copy, part of which is written again."""
    source, part, output = given.tensor("self"), given.tensor("src"), given.output()
    shape = given.row(output).shape
    axis = given.whole("dim", 0) % len(shape)
    strides = list(dense(shape))
    extent, step = shape[axis], 1
    if "index" in given.arguments:
        start, kept = given.whole("index") % extent, 1
    else:
        begin = given.whole("start", 0)
        start = min(max(begin + extent if begin < 0 else begin, 0), extent)
        step, kept = given.whole("step", 1), given.row(part).shape[axis]
    first = start * strides[axis]
    strides[axis] *= step
    target = (*shape[:axis], kept, *shape[axis + 1 :])
    copy(given, source, output)
    move(given, part, output, whole(target), View(target, tuple(strides), first))


def mirrored(mode: str) -> Rule:
    """Return the rule of padding with elements of the input."""

    def rule(given: Given) -> None:
        source, pads = given.tensor("self"), given.wholes("padding")
        shape = given.row(source).shape
        picked = {
            len(shape) - 1 - place: np.pad(
                np.arange(shape[-1 - place]), tuple(pads[2 * place : 2 * place + 2]),
                "reflect" if mode == "reflect" else "edge",
            )
            for place in range(len(pads) // 2)
        }  # fmt: skip
        take_along(given, source, picked)

    return rule


def filled(given: Given) -> None:
    """fill with a number."""
    fill(given, given.output(), given.real("value"))


def one_of_kind(operation: Unary) -> Rule:
    """Return the rule of a function of reals that is one kernel."""

    def rule(given: Given) -> None:
        source = given.tensor("self")
        given.must(given.row(source).dtype == FLOAT, "numbers must be float32")
        given.emit("unary", (int(operation), ref(source)), (given.output(),))

    return rule


RULES: Mapping[str, Rule] = {
    "aten::gelu": gelu,
    "aten::elu": elu,
    "aten::leaky_relu": leaky,
    "aten::pow.Tensor_Scalar": power,
    "aten::isnan": unknown,
    "aten::isinf": infinite,
    "aten::erf": one_of_kind(Unary.ERROR_FUNCTION),
    "aten::expm1": one_of_kind(Unary.EXPONENTIAL_LESS_ONE),
    "aten::trunc": one_of_kind(Unary.TRUNCATE),
    "aten::log1p": one_of_kind(Unary.LOGARITHM_OF_ONE_AND),
    "aten::log2": one_of_kind(Unary.LOGARITHM_TO_2),
    "aten::log10": one_of_kind(Unary.LOGARITHM_TO_10),
    "aten::sin": one_of_kind(Unary.SINE),
    "aten::cos": one_of_kind(Unary.COSINE),
    **{f"aten::remainder.{form}": modulo(Binary.MODULO) for form in ("Tensor", "Scalar")},
    **{f"aten::fmod.{form}": modulo(Binary.REMAINDER) for form in ("Tensor", "Scalar")},
    "aten::var.correction": variance,
    "aten::var.dim": variance,
    "aten::select_scatter": replaced,
    "aten::slice_scatter": replaced,
    **{f"aten::reflection_pad{rank}d": mirrored("reflect") for rank in (1, 2, 3)},
    **{f"aten::replication_pad{rank}d": mirrored("edge") for rank in (1, 2, 3)},
    "aten::copy": same_elements("src"),
    "aten::fill.Scalar": filled,
}
