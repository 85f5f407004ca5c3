"""Sums, products and extremes of two values, and functions of one, with what scales them.

The graph brings operands to 32 bits by RESCALEs, since TOSA computes there. The NPU does that on
the way: it takes zero points off, and of two operands of a sum scales one by a multiplier and the
other by a power of two. Where the graph's RESCALEs are just these, they are part of the operation;
else operands are written in 32 bits first.

TFLite shifts operands of ADD and SUB by 20 bits (16-bit ones by 15) and scales them to twice the
greater scale: the greater by exactly 2^19. Ref: TFLite Micro, kernels/add_common.cc; registers of
Ethos-U55, IFM_PRECISION.scale_mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.graph import Array, DType, Operation, Value
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Reshape
from mizzen.ops.elementwise import (
    Abs,
    Add,
    ArithmeticRightShift,
    Clz,
    LogicalLeftShift,
    Maximum,
    Minimum,
    Mul,
    Negate,
    Sub,
)
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.targets.ethos_u.generator.lower.carrying import ONE, SCALAR_RANGE, fits_register
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, type_of
from mizzen.targets.ethos_u.generator.lower.finish import WIDE, Finish, number, numbers, rounding_of
from mizzen.targets.ethos_u.generator.lower.orders import each_stored
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.slopes import slope_of
from mizzen.targets.ethos_u.generator.lower.views import Ints, View, planes
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Map,
    OperandScale,
    Order,
    Rounding,
    Scalar,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    Arch,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    RoundMode,
)

LEFT_SHIFT = {DType.INT8: 20, DType.INT16: 15}
"""Bits that operands of ADD and SUB gain before one is scaled, by type. Ref: registers of
Ethos-U55; as TFLite's kernels."""

FINEST_SHIFT = 63
MOST_MULTIPLIER = 1 << 32
"""OPA_SCALE has 32 bits and a shift of 6."""


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One operand as the NPU could take it: narrow integers, and what they are scaled by.

    raised      bits by which the integer less its zero point is shifted left first
    multiplier  then multiplied with, shifted right by `shift`, rounded
    values      the elements of a constant
    narrow      the type that they are read in, where they are numbers of a wider one
    """

    source: Value
    shape: Ints
    zero: int = 0
    raised: int = 0
    multiplier: int = 1
    shift: int = 0
    rounding: RoundMode = RoundMode.NATURAL
    values: Array | None = None
    narrow: DType | None = None

    @property
    def dtype(self) -> DType:
        """Type of the elements as they are read."""
        return self.narrow or self.source.dtype

    @property
    def power(self) -> int | None:
        """The power of two that the integers are exactly scaled by; None if it is not one."""
        mantissa, bits = self.multiplier, self.raised - self.shift
        if mantissa <= 0 or mantissa & (mantissa - 1):
            return None
        bits += mantissa.bit_length() - 1
        return bits if bits >= 0 else None

    def fine(self, left: int) -> tuple[Scale, RoundMode] | None:
        """Return the scale of an operand that is scaled in full; None where it rounds otherwise.

        DBL rounds a first time at bit 31 of the integer shifted left by `left` bits and scaled.
        """
        power = self.power
        if power is not None and power <= 30:
            return Scale(1 << 30, 30 - power), RoundMode.NATURAL
        shift = self.shift - self.raised
        if shift < 0 or shift > FINEST_SHIFT or self.multiplier >= MOST_MULTIPLIER:
            return None
        if self.rounding is RoundMode.NATURAL:
            return Scale(self.multiplier, shift), RoundMode.NATURAL
        if self.raised == left or self.shift <= 31:
            once = self.shift <= 31
            return Scale(self.multiplier, shift), RoundMode.NATURAL if once else RoundMode.DBL
        return None


def operand_of(value: Value) -> Operand:
    """Return a value as an operand: past RESCALEs that the NPU can do on the way."""
    steps: list[Operation] = []
    current = value
    while isinstance(current.producer, Rescale | Reshape | Identity | LogicalLeftShift | Cast):
        if current.dtype is not DType.INT32 and not isinstance(
            current.producer, Reshape | Identity
        ):
            break
        steps.append(current.producer)
        current = current.producer.operand
    narrow = next(
        (
            place
            for place in range(len(steps) - 1, -1, -1)
            if steps[place].operand.dtype in LEFT_SHIFT
        ),
        None,
    )
    if narrow is None:
        return Operand(value, value.shape, values=value.constant)
    steps = steps[: narrow + 1]
    source = steps[-1].operand
    found = Operand(source, source.shape, values=source.constant)
    for step in reversed(steps):
        taken = _taken(found, step)
        if taken is None:
            return Operand(value, value.shape, values=value.constant)
        found = taken
    return found


def _taken(found: Operand, step: Operation) -> Operand | None:
    """Return an operand with one more step; None where the NPU cannot do it on the way."""
    shape = step.result.shape
    match step:
        case Reshape() | Identity() | Cast():
            return replace(found, shape=shape)
        case LogicalLeftShift():
            amounts = step.input2.constant
            if amounts is None or found.power is None or len(set(amounts.reshape(-1).tolist())) > 1:
                return None
            return replace(found, raised=found.raised + int(amounts.reshape(-1)[0]), shape=shape)
        case Rescale():
            return _scaled(found, step, shape)
        case _:
            return None


def _scaled(found: Operand, step: Rescale, shape: Ints) -> Operand | None:
    multipliers, shifts = numbers(step.multiplier), numbers(step.shift)
    unsigned = step.input_unsigned or step.output_unsigned
    if len(multipliers) > 1 or unsigned or number(step.output_zp):
        return None
    power, zero = found.power, number(step.input_zp)
    if power is None or (zero and (power or found.zero or found.source.dtype in WIDE)):
        return None
    raised = power
    return replace(
        found,
        zero=found.zero or zero,
        raised=raised,
        multiplier=int(multipliers[0]),
        shift=int(shifts[0]),
        rounding=rounding_of(step),
        shape=shape,
    )


KINDS: dict[type[Operation], ElementwiseMode] = {
    Add: ElementwiseMode.ADD,
    Sub: ElementwiseMode.SUB,
    Mul: ElementwiseMode.MUL,
    Maximum: ElementwiseMode.MAX,
    Minimum: ElementwiseMode.MIN,
    LogicalLeftShift: ElementwiseMode.SHL,
    ArithmeticRightShift: ElementwiseMode.SHR,
    Abs: ElementwiseMode.ABS,
    Clz: ElementwiseMode.CLZ,
}


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One elementwise operation: its operands as they are read (`rows`), how they are scaled.

    rounding        of the result; its scale is that of the finish if None
    operand_scales  of the operands, or of a slope above and below zero, as only U85 has them
    activation      clip and table if they are not the finish's
    """

    mode: ElementwiseMode | ElementwiseModeU85
    rows: tuple[Operand, ...]
    finish: Finish
    scale: Scale | None
    rounding: Rounding
    scale_mode: IfmScaleMode = IfmScaleMode.OPA_OPB_16
    scale_a: Scale | None = None
    scale_b: Scale | None = None
    operand_rounding: RoundMode = RoundMode.DBL
    operand_scales: tuple[OperandScale | None, OperandScale | None] | None = None
    activation: Activation | None = None


def whole(value: Value) -> Operand:
    """Return a value as an operand that is read as it is."""
    return Operand(value, value.shape, values=value.constant)


@rule(Add, Sub)
def total(site: Site) -> Node:
    """ADD or SUB; an ADD that is a slope below zero is LRELU."""
    finish = site.finish(scales=True)
    slope = slope_of(site.operation)
    kept = finish.is_identity and finish.dtype is DType.INT16
    if slope is not None and slope.above is None and kept:
        operand = operand_of(slope.source)
        if operand.dtype is DType.INT16 and operand.power == 0:
            plan = Plan(ElementwiseMode.LRELU, (operand,), finish, slope.scale, slope.rounding)
            return planned(site, plan)
    mode = KINDS[type(site.operation)]
    first, second = (operand_of(value) for value in site.operation.operands)
    scaled = _sum_scales(first, second)
    if scaled is None:
        first, second = (whole(value) for value in site.operation.operands)
        need(first.dtype is DType.INT32, "its operands are no sums")
        scaled = IfmScaleMode.OPA_OPB_16, ONE, ONE, RoundMode.DBL
    scale_mode, scale_a, scale_b, rounding = scaled
    return planned(
        site,
        Plan(
            mode,
            (first, second),
            finish,
            finish.scale,
            finish.rounding,
            scale_mode,
            scale_a,
            scale_b,
            rounding,
        ),
    )


Scaled = tuple[IfmScaleMode, Scale, Scale | None, RoundMode]
MOST_SMALL_POWER = 14
"""16-bit scales of both operands are powers of two up to this."""


def _sum_scales(first: Operand, second: Operand) -> Scaled | None:
    """Return how the NPU scales both operands of a sum; None where it cannot."""
    if first.dtype is not second.dtype or first.dtype not in LEFT_SHIFT:
        return None
    left = LEFT_SHIFT[first.dtype]
    powers = first.power, second.power
    if powers[0] is not None and powers[1] is not None and max(powers) <= MOST_SMALL_POWER:  # pyright: ignore[reportArgumentType] neither is None
        return (
            IfmScaleMode.OPA_OPB_16,
            Scale(1 << powers[0], 0),
            Scale(1 << powers[1], 0),
            RoundMode.DBL,
        )
    for mode, coarse, other in (
        (IfmScaleMode.OPA_32, powers[1], first),
        (IfmScaleMode.OPB_32, powers[0], second),
    ):
        fine = other.fine(left)
        if coarse == left - 1 and fine is not None:
            return mode, fine[0], None, fine[1]
    return None


@rule(Mul)
def product(site: Site) -> Node:
    """MUL, of 8 or 16 bits each, or of 32."""
    operation = site.operation
    assert isinstance(operation, Mul)
    finish, shift = site.finish(scales=True), number(operation.shift)
    operands = tuple(operand_of(value) for value in operation.operands[:2])
    small = all(row.dtype in LEFT_SHIFT and row.power == 0 for row in operands)
    if small and operands[0].dtype is operands[1].dtype and not shift:
        return planned(
            site, Plan(ElementwiseMode.MUL, operands, finish, finish.scale, finish.rounding)
        )
    need(finish.is_identity or not shift, "its product is shifted and scaled")
    operands = tuple(whole(value) for value in operation.operands[:2])
    need(operands[0].dtype is DType.INT32, "its operands are narrow and not alike")
    scale, rounding = Scale(1, shift), RoundMode.NATURAL
    if not finish.is_identity:
        power = int(finish.multipliers[0])
        bits = max(power.bit_length() - 1, 0)
        need(power == 1 << bits and finish.scale.shift >= bits, "its 32-bit product is scaled")
        need(finish.rounding is RoundMode.NATURAL, "its 32-bit product is rounded twice")
        scale = Scale(1, finish.scale.shift - bits)
    return planned(site, Plan(ElementwiseMode.MUL, operands, finish, scale, rounding))


@rule(Maximum, Minimum)
def extreme(site: Site) -> Node:
    """MAXIMUM or MINIMUM, of narrow integers where both are scaled alike by nothing."""
    operation, mode = site.operation, KINDS[type(site.operation)]
    operands = tuple(operand_of(value) for value in operation.operands)
    small = all(row.dtype in LEFT_SHIFT and row.power == 0 for row in operands)
    if small and operands[0].dtype is operands[1].dtype and site.steps:
        finish = site.finish(scales=True)
        if finish.is_identity and finish.dtype is operands[0].dtype:
            return planned(site, Plan(mode, operands, finish, None, finish.rounding))
    need(not site.steps, "its 32-bit result is scaled")
    operands = tuple(whole(value) for value in operation.operands)
    finish = site.finish(scales=True)
    return planned(site, Plan(mode, operands, finish, None, finish.rounding))


@rule(Abs, Clz)
def unary(site: Site) -> Node:
    """ABS or CLZ."""
    mode = KINDS[type(site.operation)]
    (value,) = site.operation.operands
    operand = operand_of(value)
    if mode is ElementwiseMode.ABS and operand.dtype in LEFT_SHIFT and operand.power == 0:
        finish = site.finish(scales=True)
        return planned(site, Plan(mode, (operand,), finish, finish.scale, finish.rounding))
    need(not site.steps, "its 32-bit result is scaled")
    finish = site.finish(scales=True)
    scale = ONE if mode is ElementwiseMode.ABS else None
    return planned(site, Plan(mode, (whole(value),), finish, scale, finish.rounding))


@rule(Negate)
def negated(site: Site) -> Node:
    """NEGATE: nothing less the value."""
    operation = site.operation
    value, zero, result = operation.operands
    need(value.dtype in LEFT_SHIFT, "it negates 32 bits")
    finish = site.finish(scales=False)
    need(not number(result) or not site.steps, "its result has a zero point")
    finish = replace(finish, zero_point=number(result))
    nothing = Operand(value, (1,) * value.type.rank, values=np.zeros(1, type_of(value.dtype)))
    operands = nothing, Operand(value, value.shape, zero=number(zero))
    plan = Plan(
        ElementwiseMode.SUB,
        operands,
        finish,
        ONE,
        finish.rounding,
        IfmScaleMode.OPA_OPB_16,
        ONE,
        ONE,
    )
    return planned(site, plan)


@rule(LogicalLeftShift, ArithmeticRightShift)
def shifted(site: Site) -> Node:
    """LOGICAL_LEFT_SHIFT or ARITHMETIC_RIGHT_SHIFT of 32 bits; the second rounds."""
    operation = site.operation
    need(operation.operand.dtype is DType.INT32, "it shifts narrow integers")
    need(not site.steps, "its 32-bit result is scaled")
    if isinstance(operation, ArithmeticRightShift):
        need(operation.round, "it rounds down")
    finish = site.finish(scales=True)
    operands = tuple(whole(value) for value in operation.operands)
    return planned(site, Plan(KINDS[type(operation)], operands, finish, None, RoundMode.NATURAL))


def planned(site: Site, plan: Plan, operations: Sequence[Operation] = ()) -> Node:
    """Return the node of one elementwise operation."""
    reads = [row.source for row in plan.rows if row.values is None]

    def write(emitter: Emitter, target: View) -> None:
        write_elementwise(emitter, site, plan, target)

    return site.node(reads, write, operations, stores=site.stores)


def write_elementwise(emitter: Emitter, site: Site, plan: Plan, target: View) -> None:
    """Add an elementwise operation that writes a view."""
    seen = [operand_seen(emitter, site, row, target.shape) for row in plan.rows]
    combine(emitter, site, plan, seen, target)


def combine(
    emitter: Emitter, site: Site, plan: Plan, seen: Sequence[View | Scalar], target: View
) -> None:
    """Add the operation of operands that are seen as the result's axes are.

    Those that have no row in the plan have no zero point.
    """
    zeros = [*(row.zero for row in plan.rows), *(0,) * (len(seen) - len(plan.rows))]
    if len(seen) == 1:
        (only,) = seen
        assert isinstance(only, View)
        for (ifm, ofm), order in each_stored(emitter, site.origin, only, target):
            rows = _zeroed(ifm, zeros[0]), None, ofm
            emitter.operations.append(_operation(site, plan, rows, order))
        return
    first, second = seen
    full = target.shape
    spreads = site.arch is Arch.U85  # both operands, not the second alone
    turned = isinstance(first, Scalar) or (
        first.shape != full and not isinstance(second, Scalar) and not spreads
    )
    if turned and not isinstance(second, View):
        first, turned = _stored(emitter, first, target), False
    if turned:
        first, second = second, first
        zeros.reverse()
    assert isinstance(first, View)
    if first.shape != full and not spreads:
        first = _expanded(emitter, site, first, zeros[0], full)
    if isinstance(second, Scalar):
        for (ifm, ofm), order in each_stored(emitter, site.origin, first, target):
            rows = _zeroed(ifm, zeros[0]), second, ofm
            emitter.operations.append(_operation(site, plan, rows, order, turned=turned))
        return
    for (ifm, ifm2, ofm), order in each_stored(emitter, site.origin, first, second, target):
        rows = _zeroed(ifm, zeros[0]), _zeroed(ifm2, zeros[1]), ofm
        emitter.operations.append(_operation(site, plan, rows, order, turned=turned))


def _zeroed(map_: Map, zero: int) -> Map:
    return replace(map_, zero_point=zero)


def _operation(
    site: Site,
    plan: Plan,
    rows: tuple[Map, Map | Scalar | None, Map],
    order: Order,
    *,
    turned: bool = False,
) -> Elementwise:
    """Return the operation of three maps: what is read, and what is written."""
    finish, scales = plan.finish, plan.operand_scales
    if scales is not None and turned:
        scales = scales[1], scales[0]
    ifm, ifm2, ofm = rows
    return Elementwise(
        site.origin,
        plan.mode,
        ifm,
        ifm2,
        _zeroed(ofm, finish.zero_point),
        finish.activation if plan.activation is None else plan.activation,
        reversed=turned,
        scale=plan.scale,
        scale_a=plan.scale_a,
        scale_b=plan.scale_b,
        scale_mode=plan.scale_mode,
        rounding=plan.rounding,
        ifm_rounding=plan.operand_rounding,
        order=order,
        operand_scales=scales,
    )


def operand_seen(emitter: Emitter, site: Site, row: Operand, shape: Ints) -> View | Scalar:
    """Return an operand as a view of as many axes as the result, or as one number."""
    if row.values is not None:
        values = row.values
        if values.size == 1 and fits_register(int(values.reshape(-1)[0]), site.arch):
            return Scalar(int(values.reshape(-1)[0]), type_of(row.dtype), row.zero)
        given = np.ascontiguousarray(values).astype(type_of(row.dtype)).reshape(row.shape)
        return _ranked(emitter.constant(given, "constant"), shape)
    view = emitter.read(row.source)
    found = view.reshaped(row.shape)
    if found is None:
        found = emitter.copied(view, site.origin).reshaped(row.shape)
    assert found is not None
    return _ranked(found, shape)


def _ranked(view: View, shape: Ints) -> View:
    missing = len(shape) - len(view.shape)
    return replace(
        view, shape=(*(1,) * missing, *view.shape), strides=(*(1,) * missing, *view.strides)
    )


def _stored(emitter: Emitter, number_: View | Scalar, target: View) -> View:
    """Return a number as a tensor of one element."""
    assert isinstance(number_, Scalar)
    rank = max(len(target.shape), 1)
    return emitter.constant(np.array(number_.value, number_.dtype).reshape((1,) * rank), "number")


def _expanded(emitter: Emitter, site: Site, view: View, zero: int, shape: Ints) -> View:
    """Return a view repeated to a shape: it is added to nothing of that shape."""
    dtype = emitter.dtype(view)
    nothing = emitter.constant(np.zeros(shape, dtype), "nothing")
    made = emitter.tensor("repeated", shape, dtype)
    mode = ElementwiseMode.ADD
    info = np.iinfo(dtype)
    low, high = (int(info.min), int(info.max)) if dtype.itemsize < 4 else SCALAR_RANGE
    for one, other, target in planes(nothing, view, made):
        emitter.operations.append(
            Elementwise(
                site.origin,
                mode,
                emitter.map(one),
                emitter.map(other),
                emitter.map(target),
                Activation(low, high),
                scale=ONE,
                scale_a=ONE,
                scale_b=ONE,
            )
        )
    return made
