"""Shifts of any integers on U85, in either rounding, and quotients.

Ref: registers of Ethos-U85, elementwise modes SHL, SHR, LSR and DIV; TOSA 1.0, 2.5.2, 2.5.6,
2.5.8 and 2.5.9.
"""

from __future__ import annotations

from dataclasses import replace

from mizzen.graph import Operation
from mizzen.ops.elementwise import (
    ArithmeticRightShift,
    Intdiv,
    LogicalLeftShift,
    LogicalRightShift,
)
from mizzen.targets.ethos_u.generator.lower.context import Node
from mizzen.targets.ethos_u.generator.lower.elementwise import Plan, planned, whole
from mizzen.targets.ethos_u.generator.lower.finish import plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.operations import Rounding
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRangeU85,
    ElementwiseMode,
    ElementwiseModeU85,
    RoundMode,
    RoundModeOfmU85,
)

MODES: dict[type[Operation], ElementwiseMode | ElementwiseModeU85] = {
    ArithmeticRightShift: ElementwiseMode.SHR,
    Intdiv: ElementwiseModeU85.DIV,
    LogicalLeftShift: ElementwiseMode.SHL,
    LogicalRightShift: ElementwiseModeU85.LSR,
}


@rule_u85(*MODES)
def moved_bits(site: Site) -> Node:
    """ARITHMETIC_RIGHT_SHIFT, LOGICAL_LEFT_SHIFT, LOGICAL_RIGHT_SHIFT; INTDIV.

    A shift to the left loses the high bits, which no range may keep then.
    """
    operation = site.operation
    need(not site.steps, "its result is scaled")
    rounding: Rounding = RoundMode.NATURAL
    if isinstance(operation, ArithmeticRightShift) and not operation.round:
        rounding = RoundModeOfmU85.TRUNCATE_TO_LOWER
    finish = plain(site.root.dtype)
    wraps = isinstance(operation, LogicalLeftShift)
    activation = replace(finish.activation, clip_range=ClipRangeU85.NONE) if wraps else None
    operands = tuple(whole(value) for value in operation.operands)
    plan = Plan(MODES[type(operation)], operands, finish, None, rounding, activation=activation)
    return planned(site, plan)
