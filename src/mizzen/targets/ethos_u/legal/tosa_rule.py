"""The vocabulary of the rules of TOSA's operations."""

from __future__ import annotations

from typing import Any

from mizzen.graph import DType, Operation, Value
from mizzen.targets import rules
from mizzen.targets.ethos_u.commands import Arch

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
