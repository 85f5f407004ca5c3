"""Operators on single elements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mizzen.package.c.layout import Binary, Unary
from mizzen.package.c.lowering.context import Given, Rule, ref
from mizzen.package.c.lowering.strides import (
    broadcast_shape,
    broadcast_strides,
    copy,
    folded,
)
from mizzen.package.device import TensorArgument

FLOAT = np.dtype(np.float32)
PYTORCH, TFLITE = range(2)
"""The ways of the kernels `cast`, `quantize` and `dequantize`."""
COMPARISONS = range(Binary.EQUAL, Binary.GREATER_EQUAL + 1)
OF_REALS = (
    Unary.SQUARE_ROOT, Unary.INVERSE_SQUARE_ROOT, Unary.RECIPROCAL, Unary.EXPONENTIAL,
    Unary.LOGARITHM, Unary.TANH, Unary.SIGMOID,
)  # fmt: skip


def binary(operation: Binary, one: str = "self", other: str = "other") -> Rule:
    """Return the rule of an operator on two elements, either of which may be a number."""

    def rule(given: Given) -> None:
        dtype = _common(given, one, other, operation)
        a, b = (_operand(given, name, dtype) for name in (one, other))
        scale = given.arguments.get("alpha")
        if scale not in (None, 1):
            b = _times(given, b, given.real("alpha"))
        emit_binary(given, operation, a, b, given.output())

    return rule


def division(given: Given) -> None:
    """A quotient of reals, or one of integers that is rounded as asked."""
    mode = given.get("rounding_mode")
    output = given.row(given.output()).dtype
    if mode is None:
        a, b = (_operand(given, name, FLOAT) for name in ("self", "other"))
        emit_binary(given, Binary.DIVIDE, a, b, given.output())
        return
    whole = output.kind in "iu"
    a, b = (_operand(given, name, output) for name in ("self", "other"))
    if whole:
        chosen = Binary.FLOOR_DIVIDE if mode == "floor" else Binary.DIVIDE
        emit_binary(given, chosen, a, b, given.output())
        return
    given.must(mode == "floor", "a quotient of reals is not cut")
    shape = given.row(given.output()).shape
    exact = given.lowering.temporary(shape, output)
    emit_binary(given, Binary.DIVIDE, a, b, exact)
    given.emit("unary", (int(Unary.FLOOR), ref(exact)), (given.output(),))


def emit_binary(
    given: Given,
    operation: Binary,
    a: int,
    b: int,
    output: int,
    limits: tuple[float, ...] = (),
) -> None:
    """Add a call of the kernel `binary`; shapes broadcast.

    limits  least and greatest of a real output that has any
    """
    tensors = [given.row(index) for index in (a, b)]
    given.must(tensors[0].dtype == tensors[1].dtype, "both must have one type")
    given.must(tensors[0].dtype != np.float64, "numbers must have 32 bits, not 64")
    shape = broadcast_shape(tensors[0].shape, tensors[1].shape)
    extents, *strides = folded(
        shape, *(broadcast_strides(tensor.shape, shape) for tensor in tensors)
    )
    given.emit("binary", (int(operation), ref(a), ref(b), extents, *strides, *limits), (output,))


def unary(operation: Unary, name: str = "self") -> Rule:
    """Return the rule of a function of one element."""

    def rule(given: Given) -> None:
        output = given.row(given.output())
        needed = FLOAT if operation in OF_REALS else output.dtype
        given.must(output.dtype == needed, "the output must be float32")
        given.must(output.dtype != np.float64, "numbers must have 32 bits, not 64")
        source = _operand(given, name, needed)
        given.emit("unary", (int(operation), ref(source)), (given.output(),))

    return rule


def limited(given: Given) -> None:
    """Clamp: no less than one number, no more than another."""
    low, high = (given.arguments.get(name) for name in ("min", "max"))
    _limit(given, low, high)


def limited_from(low: float) -> Rule:
    """Return the rule of a function that is the operand itself above a limit."""

    def rule(given: Given) -> None:
        _limit(given, low, None)

    return rule


def hardtanh(given: Given) -> None:
    """Clamp, with other names."""
    _limit(given, given.real("min_val", -1.0), given.real("max_val", 1.0))


def _limit(given: Given, low: object, high: object) -> None:
    output = given.row(given.output())
    source = _operand(given, "self", output.dtype)
    steps = [(Binary.MAXIMUM, low, "min"), (Binary.MINIMUM, high, "max")]
    kept = [step for step in steps if step[1] is not None]
    for place, (operation, limit, name) in enumerate(kept):
        last = place == len(kept) - 1
        target = given.output() if last else given.lowering.temporary(output.shape, output.dtype)
        if isinstance(limit, TensorArgument):
            held = _operand(given, name, output.dtype)
        else:
            assert isinstance(limit, int | float), limit
            held = given.lowering.constant(limit, output.dtype)
        emit_binary(given, operation, source, held, target)
        source = target


def chosen(given: Given) -> None:
    """One of two elements, by a condition."""
    dtype = given.row(given.output()).dtype
    condition = given.tensor("condition")
    emit_select(given, condition, *(_operand(given, name, dtype) for name in ("self", "other")))


def emit_select(given: Given, condition: int, one: int, other: int) -> None:
    """Add a call of the kernel `select`; shapes broadcast."""
    shape = given.row(given.output()).shape
    tensors = [given.row(index) for index in (condition, one, other)]
    extents, *strides = folded(
        shape, *(broadcast_strides(tensor.shape, shape) for tensor in tensors)
    )
    arguments = (ref(condition), ref(one), ref(other), extents, *strides)
    given.emit("select", arguments, (given.output(),))


def negated_bool(given: Given) -> None:
    """Logical not: of numbers, whether they are 0."""
    source = _operand(given, "self", np.dtype(np.bool_))
    given.emit("unary", (int(Unary.BITWISE_NOT), ref(source)), (given.output(),))


def logical(operation: Binary) -> Rule:
    """Return the rule of a logical operator: numbers are true if they are not 0."""

    def rule(given: Given) -> None:
        a, b = (_operand(given, name, np.dtype(np.bool_)) for name in ("self", "other"))
        emit_binary(given, operation, a, b, given.output())

    return rule


def converted(name: str) -> Rule:
    """Return the rule of a conversion to another type."""

    def rule(given: Given) -> None:
        convert(given, given.tensor(name), given.output())

    return rule


def convert(given: Given, source: int, output: int, way: int = PYTORCH) -> None:
    """Write the elements of a tensor to one of another type.

    way  of reals that the type does not hold: `PYTORCH` or `TFLITE`
    """
    if given.row(source).dtype == given.row(output).dtype:
        copy(given, source, output)
    else:
        given.emit("cast", (ref(source), way), (output,))


def _common(given: Given, one: str, other: str, operation: Binary) -> np.dtype[np.generic]:
    """Return the type in which two operands are compared or computed, as PyTorch promotes them."""
    if operation not in COMPARISONS:
        return given.row(given.output()).dtype
    dtypes: list[np.dtype[np.generic]] = []
    for name in (one, other):
        argument = given.arguments.get(name)
        if isinstance(argument, TensorArgument):
            dtypes.append(given.row(argument.index).dtype)
        elif isinstance(argument, float):
            dtypes.append(FLOAT)
    return _promoted(dtypes)


def _promoted(dtypes: list[np.dtype[np.generic]]) -> np.dtype[np.generic]:
    reals = [dtype for dtype in dtypes if dtype.kind == "f"]
    return max(reals or dtypes, key=lambda dtype: dtype.itemsize)


def _operand(given: Given, name: str, dtype: npt.DTypeLike) -> int:
    """Return an argument as a tensor of a type: numbers are constants, others are converted."""
    wanted = np.dtype(dtype)
    argument = given.arguments.get(name)
    if not isinstance(argument, TensorArgument):
        return given.lowering.constant(given.real(name), wanted)
    tensor = given.row(argument.index)
    if tensor.dtype == wanted:
        return argument.index
    if tensor.data is not None:
        return given.lowering.constant(tensor.data, wanted)
    target = given.lowering.temporary(tensor.shape, wanted)
    given.emit("cast", (ref(argument.index), PYTORCH), (target,))
    return target


def _times(given: Given, index: int, factor: float) -> int:
    tensor = given.row(index)
    target = given.lowering.temporary(tensor.shape, tensor.dtype)
    emit_binary(
        given, Binary.MULTIPLY, index, given.lowering.constant(factor, tensor.dtype), target
    )
    return target


BINARY = {
    "add": Binary.ADD, "sub": Binary.SUBTRACT, "mul": Binary.MULTIPLY, "eq": Binary.EQUAL,
    "ne": Binary.NOT_EQUAL, "lt": Binary.LESS, "le": Binary.LESS_EQUAL, "gt": Binary.GREATER,
    "ge": Binary.GREATER_EQUAL, "bitwise_and": Binary.BITWISE_AND,
    "bitwise_or": Binary.BITWISE_OR, "bitwise_xor": Binary.BITWISE_XOR,
}  # fmt: skip
UNARY = {
    "abs": Unary.ABSOLUTE, "neg": Unary.NEGATE, "bitwise_not": Unary.BITWISE_NOT,
    "sqrt": Unary.SQUARE_ROOT, "rsqrt": Unary.INVERSE_SQUARE_ROOT,
    "reciprocal": Unary.RECIPROCAL, "exp": Unary.EXPONENTIAL, "log": Unary.LOGARITHM,
    "tanh": Unary.TANH, "sigmoid": Unary.SIGMOID, "floor": Unary.FLOOR, "ceil": Unary.CEILING,
    "round": Unary.ROUND, "sign": Unary.SIGN,
}  # fmt: skip
LOGICAL = {
    "and": Binary.BITWISE_AND, "or": Binary.BITWISE_OR, "xor": Binary.BITWISE_XOR,
}  # fmt: skip

RULES: Mapping[str, Rule] = {
    **{
        f"aten::{name}.{form}": binary(operation)
        for name, operation in BINARY.items()
        for form in ("Tensor", "Scalar")
    },
    "aten::maximum": binary(Binary.MAXIMUM),
    "aten::minimum": binary(Binary.MINIMUM),
    **{
        f"aten::div.{form}": division for form in ("Tensor", "Scalar", "Tensor_mode", "Scalar_mode")
    },
    **{f"aten::{name}": unary(operation) for name, operation in UNARY.items()},
    **{f"aten::logical_{name}": logical(operation) for name, operation in LOGICAL.items()},
    "aten::logical_not": negated_bool,
    "aten::relu": limited_from(0.0),
    "aten::clamp": limited,
    "aten::clamp.Tensor": limited,
    "aten::hardtanh": hardtanh,
    "aten::where.self": chosen,
    "aten::_to_copy": converted("self"),
    "aten::to.dtype": converted("self"),
}
