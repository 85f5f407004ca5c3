"""ELEMENTWISE: operations on two maps, a map and a scalar, or one map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.sim.finish import Finish
from mizzen.targets.ethos_u.sim.memory import MapView, Memory, Run, Workspace
from mizzen.targets.ethos_u.sim.operations import Binary, Elementwise, FeatureMap, OperandScaling
from mizzen.targets.ethos_u.sim.rounding import Rounding, Scaling, scaling
from mizzen.targets.ethos_u.sim.window import images_per_block

Array = npt.NDArray[Any]

LEFT_SHIFT = {1: 20}
"""Bits that ADD and SUB gain before operands are rescaled, by bytes of an element."""
WIDE_LEFT_SHIFT = 15
MAGNITUDE_32 = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class ElementwiseKernel:
    """An elementwise operation; `table` for TABLE activation."""

    operation: Elementwise
    table: npt.NDArray[np.uint8] | None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        return _ElementwiseRun(self, memory, workspace).run


class _ElementwiseRun:
    def __init__(self, kernel: ElementwiseKernel, memory: Memory, workspace: Workspace) -> None:
        op = self.op = kernel.operation
        self.batch = memory.batch
        self.workspace = workspace
        self.a = MapView(op.a, memory, workspace, "ifm")
        self.b = None
        if isinstance(op.b, FeatureMap):
            self.b = MapView(op.b, memory, workspace, "ifm2")
        self.output = MapView(op.output.fm, memory, workspace, "ofm")
        self.scaling = result_scaling(op)
        self.operand_scaling = operand_scaling(op)
        fm, act = op.output.fm, op.output.activation
        post = None if op.mode is Binary.LRELU else self.scaling
        bound = result_bound(op)
        self.finish = Finish(fm, act, post, bound, kernel.table, workspace, op.where)
        self.images = images_per_block(fm.height * fm.width * fm.depth)

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        for start in range(0, self.batch, self.images):
            stop = min(start + self.images, self.batch)
            result = self._result(start, stop)
            self.finish(result, self.output.target(start, stop))
            self.output.commit(start, stop)

    def _result(self, start: int, stop: int) -> Array:
        op = self.op
        a = self._operand("operand a", op.a, self.a.load(start, stop))
        if self.b is not None:
            assert isinstance(op.b, FeatureMap)
            b = self._operand("operand b", op.b, self.b.load(start, stop))
        else:
            b = np.full((1, 1, 1, 1), op.b or 0, np.int64)
        if op.reversed:
            a, b = b, a
        if op.mode.is_unary:
            return self._unary(a)
        shape = (stop - start, *self.output.shape)
        return self._binary(a, b, self.workspace.take("result", shape, np.int64))

    def _operand(self, use: str, fm: FeatureMap, values: Array) -> Array:
        operand = self.workspace.take(use, values.shape, np.int64)
        np.copyto(operand, values)
        if fm.zero_point and fm.dtype.itemsize < 4:
            np.subtract(operand, fm.zero_point, out=operand)
        return operand

    def _binary(self, a: Array, b: Array, out: Array) -> Array:
        match self.op.mode:
            case Binary.MUL:
                return np.multiply(a, b, out=out)
            case Binary.ADD:
                a, b = self._rescaled(a, b)
                return np.add(a, b, out=out)
            case Binary.SUB:
                a, b = self._rescaled(a, b)
                return np.subtract(a, b, out=out)
            case Binary.MIN:
                return np.minimum(a, b, out=out)
            case Binary.MAX:
                return np.maximum(a, b, out=out)
            case Binary.SHL:
                # Whether hardware wraps or saturates beyond 32 bits is not known: the finish
                # refuses such results.
                self._check_shift(b)
                return np.left_shift(a, b, out=out)
            case Binary.SHR:
                self._check_shift(b)
                return shifted_right(a, b, self.op.output.rounding)
            case mode:
                raise AssertionError(mode)

    def _unary(self, a: Array) -> Array:
        match self.op.mode:
            case Binary.ABS:
                return np.abs(a, out=a)
            case Binary.CLZ:
                # frexp's exponent is the bit length; 32-bit integers are exact in float64.
                return 32 - np.frexp((a & 0xFFFFFFFF).astype(np.float64))[1]
            case Binary.LRELU:
                assert self.scaling is not None
                return np.where(a >= 0, a, self.scaling.apply(a.copy()))
            case mode:
                raise AssertionError(mode)

    def _rescaled(self, a: Array, b: Array) -> tuple[Array, Array]:
        op, prepared = self.op, self.operand_scaling
        if op.operand_scaling is OperandScaling.BOTH_16:
            a_scale, b_scale = op.scale_a[0], op.scale_b
            return (a if a_scale == 1 else a * a_scale), (b if b_scale == 1 else b * b_scale)
        assert prepared is not None
        left = left_shift(op)
        scaled = a if op.operand_scaling is OperandScaling.A_32 else b
        if magnitude(op.a) << left > prepared.bound or magnitude(op.b) << left > prepared.bound:
            self._check_operand(scaled, prepared.bound >> left)
        if op.operand_scaling is OperandScaling.A_32:
            return prepared.apply(np.left_shift(a, left)), np.left_shift(b, left - 1)
        return np.left_shift(a, left - 1), prepared.apply(np.left_shift(b, left))

    def _check_operand(self, values: Array, bound: int) -> None:
        if max(-int(values.min()), int(values.max())) > bound:
            raise fail(
                "E641",
                f"{self.op.where.name}: an operand must stay within {bound} to be scaled, and "
                f"reaches {int(values.min())}..{int(values.max())}",
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


def left_shift(op: Elementwise) -> int:
    """Bits that operands of ADD and SUB are shifted left before they are rescaled."""
    return LEFT_SHIFT.get(op.a.dtype.itemsize, WIDE_LEFT_SHIFT)


def shifted_right(a: Array, amounts: Array, rounding: Rounding) -> Array:
    """Arithmetic right shift by `amounts`, rounded."""
    if rounding is Rounding.TRUNCATE:
        below = (a >> 63) & ((np.int64(1) << amounts) - 1)
        return (a + below) >> amounts
    return (a + ((np.int64(1) << amounts) >> 1)) >> amounts


def result_scaling(op: Elementwise) -> Scaling | None:
    """Prepare the scaling of the result; a 32-bit MUL shifts without multiplying."""
    if op.output.scale is None:
        return None
    multiplier, shift = op.output.scale
    if op.mode is Binary.MUL and op.a.dtype.itemsize == 4:
        multiplier = 1
    return scaling(multiplier, shift, op.output.rounding)


def operand_scaling(op: Elementwise) -> Scaling | None:
    """Prepare the scaling of the operand that ADD or SUB rescales with full precision."""
    if op.operand_scaling is OperandScaling.BOTH_16:
        return None
    multiplier, shift = op.scale_a
    return scaling(multiplier, shift + left_shift(op), op.input_rounding)


def result_bound(op: Elementwise) -> int:
    """Largest absolute value that the result can have before it is scaled."""
    a = magnitude(op.a)
    b = magnitude(op.b)
    match op.mode:
        case Binary.MUL:
            return a * b
        case Binary.ADD | Binary.SUB if op.operand_scaling is OperandScaling.BOTH_16:
            return a * op.scale_a[0] + b * op.scale_b
        case Binary.ADD | Binary.SUB:
            multiplier, shift = op.scale_a
            left = left_shift(op)
            largest = max(a, b)
            return (largest * multiplier >> shift) + 1 + (largest << (left - 1))
        case _:
            return max(a, b, 32)


def magnitude(operand: FeatureMap | int | None) -> int:
    """Largest absolute value of an operand."""
    match operand:
        case None:
            return 0
        case int():
            return abs(operand)
        case FeatureMap():
            return MAGNITUDE_32 if operand.dtype.itemsize >= 4 else operand.magnitude
