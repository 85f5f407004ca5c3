"""Comparisons, logic and choices on U85: masks of ones and zeros, and the bits of integers.

What compares gives all ones, -1, where it holds. TOSA's truth is 1: so the opposite is asked, and 1
is added as the zero point of the result. A choice takes bits by the mask itself, which is as wide
as what is chosen.

Ref: registers of Ethos-U85, elementwise modes CMP_EQ to AND_NOT; what compares gives is verified by
streams of Vela that choose so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from mizzen.graph import DType, Operation, Value
from mizzen.ops.control_flow import Identity
from mizzen.ops.elementwise import (
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Equal,
    Greater,
    GreaterEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
    Select,
)
from mizzen.targets.ethos_u.generator.lower.carrying import ONE, carry
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, spread, type_of
from mizzen.targets.ethos_u.generator.lower.elementwise import (
    Operand,
    Plan,
    combine,
    operand_seen,
    planned,
    whole,
    write_elementwise,
)
from mizzen.targets.ethos_u.generator.lower.finish import plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.sums_u85 import operand_scale, operands_of
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseModeU85, RoundMode


class Test(Enum):
    """What is asked of two integers; the value is the mode that asks it, and whether of the second
    and the first."""

    EQ = ElementwiseModeU85.CMP_EQ, False
    NE = ElementwiseModeU85.CMP_NE, False
    GE = ElementwiseModeU85.CMP_GE, False
    GT = ElementwiseModeU85.CMP_GT, False
    LE = ElementwiseModeU85.CMP_GE, True
    LT = ElementwiseModeU85.CMP_GT, True

    @property
    def opposite(self) -> Test:
        """What holds where this does not."""
        return OPPOSITES[self]


OPPOSITES = {
    Test.EQ: Test.NE,
    Test.NE: Test.EQ,
    Test.GE: Test.LT,
    Test.LT: Test.GE,
    Test.GT: Test.LE,
    Test.LE: Test.GT,
}
TESTS: dict[type[Operation], Test] = {
    Equal: Test.EQ,
    Greater: Test.GT,
    GreaterEqual: Test.GE,
}


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A truth as a comparison of two operands."""

    test: Test
    operands: tuple[Operand, ...]

    @property
    def reads(self) -> list[Value]:
        """The values that it is computed of."""
        return [row.source for row in self.operands if row.values is None]

    def plan(self, dtype: DType, zero_point: int = 0) -> Plan:
        """Return the operation that gives its mask in a type; `zero_point` is added."""
        mode, turned = self.test.value
        operands = self.operands[::-1] if turned else self.operands
        first, second = (operand_scale(row) for row in operands)
        return Plan(
            mode,
            operands,
            plain(dtype, zero_point),
            ONE,
            RoundMode.NATURAL,
            operand_scales=(first, second),
        )


def condition_of(value: Value) -> Condition:
    """Return a truth as a comparison: that which gives it, or of it with 0."""
    operation = value.producer
    match operation:
        case Equal() | Greater() | GreaterEqual():
            return Condition(TESTS[type(operation)], operands_of(*operation.operands))
        case LogicalNot():
            found = condition_of(operation.input1)
            return replace(found, test=found.test.opposite)
        case Identity():
            return condition_of(operation.operand)
        case _:
            nothing = np.zeros(1, type_of(value.dtype))
            rank = (1,) * value.type.rank
            return Condition(Test.NE, (whole(value), Operand(value, rank, values=nothing)))


@rule_u85(Equal, Greater, GreaterEqual, LogicalNot)
def truth(site: Site) -> Node:
    """EQUAL, GREATER, GREATER_EQUAL, and the opposite of each; LOGICAL_NOT."""
    need(not site.steps, "its truth is scaled")
    found = condition_of(site.root)
    opposite = replace(found, test=found.test.opposite)
    return planned(site, opposite.plan(DType.INT8, 1))


def converted(site: Site) -> Node:
    """CAST of a truth, which is 0 or 1, to an integer, and of an integer to whether it is not 0."""
    need(len(site.steps) == 1, "its truth is scaled")
    (cast,) = site.steps
    if cast.result.dtype is DType.BOOL:
        found = condition_of(site.root)
        opposite = replace(found, test=found.test.opposite)
        return planned(site, opposite.plan(DType.INT8, 1), site.steps)
    finish = plain(cast.result.dtype)

    def write(emitter: Emitter, target: View) -> None:
        carry(emitter, emitter.read(site.root), target, finish, 0, site.origin)

    return site.node((site.root,), write, site.steps, stores=site.stores)


BITS: dict[type[Operation], ElementwiseModeU85] = {
    LogicalAnd: ElementwiseModeU85.AND,
    LogicalOr: ElementwiseModeU85.OR,
    LogicalXor: ElementwiseModeU85.XOR,
    BitwiseAnd: ElementwiseModeU85.AND,
    BitwiseOr: ElementwiseModeU85.OR,
    BitwiseXor: ElementwiseModeU85.XOR,
    BitwiseNot: ElementwiseModeU85.NOT,
}


def stored_as(dtype: DType) -> DType:
    """Return the type in which integers of a type lie; truths are bytes."""
    return DType.INT8 if dtype is DType.BOOL else dtype


def bits_plan(mode: ElementwiseModeU85, operands: Sequence[Operand], dtype: DType) -> Plan:
    """Return an operation on bits."""
    return Plan(mode, tuple(operands), plain(stored_as(dtype)), None, RoundMode.NATURAL)


@rule_u85(*BITS)
def bits(site: Site) -> Node:
    """LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR; BITWISE_AND, BITWISE_OR, BITWISE_XOR, BITWISE_NOT."""
    need(not site.steps, "its bits are scaled")
    operands = [whole(value) for value in site.operation.operands]
    return planned(site, bits_plan(BITS[type(site.operation)], operands, site.root.dtype))


@rule_u85(Select)
def choice(site: Site) -> Node:
    """SELECT: bits of the second by the mask, those of the third without it, and both."""
    operation = site.operation
    assert isinstance(operation, Select)
    need(not site.steps, "what it chooses is scaled")
    condition = condition_of(operation.input1)
    chosen, other = (whole(value) for value in operation.operands[1:])
    reads = [row.source for row in (chosen, other) if row.values is None]
    writer = _Choice(site, condition, chosen, other)
    return site.node((*condition.reads, *reads), writer.write, stores=site.stores)


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """Adds the operations of a SELECT."""

    site: Site
    condition: Condition
    chosen: Operand
    other: Operand

    @property
    def dtype(self) -> DType:
        """The type that masks and results have."""
        return stored_as(self.site.root.dtype)

    def write(self, emitter: Emitter, target: View) -> None:
        """Write the elements that are chosen."""
        shape = np.broadcast_shapes(*(row.shape for row in self.condition.operands))
        mask = emitter.tensor("mask", shape, type_of(self.dtype))
        write_elementwise(emitter, self.site, self.condition.plan(self.dtype), mask)
        mask = spread(shape, target.shape, mask)
        chosen, other = self.chosen, self.other
        if chosen.values is not None and other.values is not None:
            values = chosen.values ^ other.values
            differing = replace(chosen, values=values, shape=values.shape)
            part = self._part(emitter, target)
            self._add(emitter, ElementwiseModeU85.AND, differing, mask, part)
            self._add(emitter, ElementwiseModeU85.XOR, other, part, target)
        elif _is_nothing(chosen):
            self._add(emitter, ElementwiseModeU85.AND_NOT, other, mask, target)
        elif _is_nothing(other):
            self._add(emitter, ElementwiseModeU85.AND, chosen, mask, target)
        else:
            parts = [self._part(emitter, target) for _ in range(2)]
            self._add(emitter, ElementwiseModeU85.AND, chosen, mask, parts[0])
            self._add(emitter, ElementwiseModeU85.AND_NOT, other, mask, parts[1])
            plan = bits_plan(ElementwiseModeU85.OR, (), self.dtype)
            combine(emitter, self.site, plan, parts, target)

    def _part(self, emitter: Emitter, target: View) -> View:
        return emitter.scratch(target, "chosen", type_of(self.dtype))

    def _add(
        self, emitter: Emitter, mode: ElementwiseModeU85, operand: Operand, bits: View, to: View
    ) -> None:
        plan = bits_plan(mode, (operand,), self.dtype)
        combine(
            emitter,
            self.site,
            plan,
            (operand_seen(emitter, self.site, operand, to.shape), bits),
            to,
        )


def _is_nothing(operand: Operand) -> bool:
    return operand.values is not None and not operand.values.any()
