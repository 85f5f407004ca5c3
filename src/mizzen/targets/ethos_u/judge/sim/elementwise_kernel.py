"""ELEMENTWISE: operations on two operands, maps or scalars, or on one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.sim.finish import Finish, output_scaling
from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, OutputView, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Binary, Elementwise, FeatureMap, Where
from mizzen.targets.ethos_u.judge.sim.rounding import Rounding, Scale, prepared
from mizzen.targets.ethos_u.judge.sim.window import images_per_block

Array = npt.NDArray[Any]
Function = Callable[[Array, Array, Array], Array]
"""Combines two operands into the third array, or gives another."""


@dataclass(frozen=True, slots=True, eq=False)
class ElementwiseKernel:
    """An elementwise operation; `table` for a function that has one."""

    operation: Elementwise
    table: npt.NDArray[np.uint8] | None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        return _ElementwiseRun(self, memory, workspace).run


class _Operand:
    """One operand: loaded, without its zero point, rescaled; int64."""

    def __init__(
        self, operand: FeatureMap | int, scale: Scale | None, memory: Memory,
        workspace: Workspace, use: str, where: Where,
    ) -> None:  # fmt: skip
        self._operand = operand
        self._use = use
        self._workspace = workspace
        self._where = where
        self._scaling = prepared(scale) if scale and not scale.is_identity else None
        self._view = None
        if isinstance(operand, FeatureMap):
            self._view = MapView(operand, memory, workspace, use)
        self._checked = self._scaling is not None and magnitude(operand) > self._scaling.bound

    def load(self, start: int, stop: int) -> Array:
        """Return the operand for images `start:stop`; it may be written to."""
        values = self._values(start, stop)
        if self._scaling is None:
            return values
        if self._checked:
            self._check(values, self._scaling.bound)
        return self._scaling.apply(values)

    def _values(self, start: int, stop: int) -> Array:
        if self._view is None:
            return np.full((1, 1, 1, 1), self._operand, np.int64)
        assert isinstance(self._operand, FeatureMap)
        images = self._view.load(start, stop)
        values = self._workspace.take(f"{self._use} values", images.shape, np.int64)
        np.copyto(values, images)
        if self._operand.zero_point:
            np.subtract(values, self._operand.zero_point, out=values)
        return values

    def _check(self, values: Array, bound: int) -> None:
        if max(-int(values.min()), int(values.max())) > bound:
            raise fail(
                "E641",
                f"{self._where.name}: an operand must stay within {bound} to be scaled, and "
                f"reaches {int(values.min())}..{int(values.max())}",
                origin=self._where.origin,
            )


SATURATING = {Binary.MUL}
"""Operations whose 32-bit results saturate. Vela's first core doubles the inverse in a softmax so,
which reaches 2**31 where one class has all the probability, and TensorFlow Lite's kernel saturates
there."""


class _ElementwiseRun:
    def __init__(self, kernel: ElementwiseKernel, memory: Memory, workspace: Workspace) -> None:
        op = self.op = kernel.operation
        self.batch = memory.batch
        self.workspace = workspace
        slopes = op.mode is Binary.LRELU
        a, b = (None, None) if slopes else (op.scale_a, op.scale_b)
        self.a = _Operand(op.a, a, memory, workspace, "ifm", op.where)
        self.b = None
        if op.b is not None:
            self.b = _Operand(op.b, b, memory, workspace, "ifm2", op.where)
        self.above = prepared(op.scale_a) if slopes and op.scale_a else None
        self.below = prepared(op.scale_b) if slopes and op.scale_b else None
        self.output = OutputView(op.output, memory, workspace)
        self.finish = Finish(
            op.output,
            output_scaling(op.output),
            result_bound(op),
            kernel.table,
            workspace,
            op.where,
            saturates=op.mode in SATURATING,
        )
        height, width, depth = op.output.shape
        self.images = images_per_block(height * width * depth)

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        for start in range(0, self.batch, self.images):
            stop = min(start + self.images, self.batch)
            result = self._result(start, stop)
            self.finish(result, self.output.target(start, stop))
            self.output.commit(start, stop)

    def _result(self, start: int, stop: int) -> Array:
        a = self.a.load(start, stop)
        out = self.workspace.take("result", (stop - start, *self.output.shape), np.int64)
        if self.b is None:
            return np.broadcast_to(self._unary(a), out.shape)
        b = self.b.load(start, stop)
        if self.op.reversed:
            a, b = b, a
        if self.op.mode in SHIFTS:
            self._check_shift(b)
        if self.op.mode is Binary.DIV:
            self._check_divisor(b)
        if self.op.mode is Binary.SHR:
            return np.broadcast_to(shifted_right(a, b, self.op.output.rounding), out.shape)
        if self.op.mode is Binary.LSR:
            return np.broadcast_to(logical_right(a, b, operand_bits(self.op.a)), out.shape)
        return BINARY[self.op.mode](a, b, out)

    def _unary(self, a: Array) -> Array:
        match self.op.mode:
            case Binary.ABS:
                return np.abs(a, out=a)
            case Binary.NOT:
                return np.invert(a, out=a)
            case Binary.CLZ:
                # frexp's exponent is the bit length; 32-bit integers are exact in float64.
                return 32 - np.frexp((a & 0xFFFFFFFF).astype(np.float64))[1]
            case Binary.LRELU:
                positive = self.above.apply(a.copy()) if self.above else a
                negative = self.below.apply(a.copy()) if self.below else a
                return np.where(a >= 0, positive, negative)
            case mode:
                raise AssertionError(mode)

    def _check_divisor(self, divisors: Array) -> None:
        if not divisors.all():
            raise fail(
                "E642",
                f"{self.op.where.name}: a divisor must not be 0, and one is",
                origin=self.op.where.origin,
            )

    def _check_shift(self, amounts: Array) -> None:
        if amounts.min() < 0 or amounts.max() > 31:
            raise fail(
                "E642",
                f"{self.op.where.name}: a shift must be in 0..31, and reaches "
                f"{int(amounts.min())}..{int(amounts.max())}",
                origin=self.op.where.origin,
            )


def compare(ufunc: Callable[..., Array]) -> Function:
    """All ones where a comparison holds, else zero."""

    def compared(a: Array, b: Array, out: Array) -> Array:
        np.copyto(out, ufunc(a, b))
        return np.negative(out, out=out)

    return compared


def divide(a: Array, b: Array, out: Array) -> Array:
    """Quotient toward zero, of divisors other than 0."""
    quotient = np.floor_divide(np.abs(a), np.abs(b), out=out)
    return np.multiply(quotient, np.sign(a) * np.sign(b), out=out)


SHIFTS = (Binary.SHL, Binary.SHR, Binary.LSR)
BINARY: dict[Binary, Function] = {
    Binary.MUL: lambda a, b, out: np.multiply(a, b, out=out),
    Binary.ADD: lambda a, b, out: np.add(a, b, out=out),
    Binary.SUB: lambda a, b, out: np.subtract(a, b, out=out),
    Binary.MIN: lambda a, b, out: np.minimum(a, b, out=out),
    Binary.MAX: lambda a, b, out: np.maximum(a, b, out=out),
    # Whether U55 wraps or saturates beyond 32 bits is not known: the finish refuses such results.
    Binary.SHL: lambda a, b, out: np.left_shift(a, b, out=out),
    Binary.DIV: divide,
    Binary.CMP_EQ: compare(np.equal),
    Binary.CMP_NE: compare(np.not_equal),
    Binary.CMP_GE: compare(np.greater_equal),
    Binary.CMP_GT: compare(np.greater),
    Binary.AND: lambda a, b, out: np.bitwise_and(a, b, out=out),
    Binary.OR: lambda a, b, out: np.bitwise_or(a, b, out=out),
    Binary.XOR: lambda a, b, out: np.bitwise_xor(a, b, out=out),
    Binary.AND_NOT: lambda a, b, out: np.bitwise_and(a, ~b, out=out),
}


def shifted_right(a: Array, amounts: Array, rounding: Rounding) -> Array:
    """Arithmetic right shift by `amounts`, rounded."""
    below = (np.int64(1) << amounts) - 1
    half = (np.int64(1) << amounts) >> 1
    match rounding:
        case Rounding.TRUNCATE:
            return (a + ((a >> 63) & below)) >> amounts
        case Rounding.FLOOR:
            return a >> amounts
        case Rounding.SYMMETRIC:
            return (a + half - ((a < 0) & (amounts > 0))) >> amounts
        case _:
            return (a + half) >> amounts


def logical_right(a: Array, amounts: Array, bits: int) -> Array:
    """Right shift of `bits` that fills with zeros; the result is signed."""
    half = np.int64(1) << (bits - 1)
    shifted = (a & ((np.int64(1) << bits) - 1)) >> amounts
    return ((shifted + half) & ((half << 1) - 1)) - half


def operand_bits(operand: FeatureMap | int) -> int:
    """Bits of an operand's elements; scalars have 32."""
    return 8 * operand.dtype.itemsize if isinstance(operand, FeatureMap) else 32


def result_bound(op: Elementwise) -> int:
    """Largest absolute value that the result can have before it is scaled."""
    if op.mode is Binary.LRELU:
        return max(scaled_magnitude(op.a, op.scale_a), scaled_magnitude(op.a, op.scale_b))
    a, b = scaled_magnitude(op.a, op.scale_a), scaled_magnitude(op.b, op.scale_b)
    match op.mode:
        case Binary.MUL:
            return a * b
        case Binary.ADD | Binary.SUB:
            return a + b
        case Binary.SHL:
            return a << 31
        case Binary.LSR:
            return 1 << 32
        case Binary.AND | Binary.OR | Binary.XOR | Binary.AND_NOT | Binary.NOT:
            return 1 << max(a, b, 1).bit_length()
        case _:
            return max(a, b, 32)


def scaled_magnitude(operand: FeatureMap | int | None, scale: Scale | None) -> int:
    """Largest absolute value of an operand after it is rescaled."""
    largest = magnitude(operand)
    if scale is None:
        return largest
    return (largest * scale.multiplier >> scale.shift) + 2


def magnitude(operand: FeatureMap | int | None) -> int:
    """Largest absolute value of an operand."""
    match operand:
        case None:
            return 0
        case int():
            return abs(operand)
        case FeatureMap():
            return operand.magnitude
