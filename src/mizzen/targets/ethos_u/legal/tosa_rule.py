"""The vocabulary of the rules for TOSA networks, and the operations that each family has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from mizzen.graph import DType, Operation, Value
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.legal.rule import ALL, U85

REPORT = "Vela 5.2.0, supported operators"
FOUND = "Vela 5.2.0 refuses it, found by compiling"
WRONG = "Vela 5.2.0 compiles it wrongly, found by running the result"

Measure = Callable[[Operation], str | None]
"""Gives the actual value where a rule is broken, None where it is kept."""


class Judged(Enum):
    """In which layout an operation can be judged by a rule."""

    ANYWHERE = auto()
    LAID_OUT = auto()
    """After the passes that choose the order of axes: the rule is about which axis is where."""


@dataclass(frozen=True, slots=True)
class TosaRule:
    """A row.

    limit    what must hold, as the end of "... must have"
    measure  finds the actual value that breaks it, as the end of "... has"
    help     what to change in the user's model
    """

    id: str
    operations: frozenset[str]
    archs: tuple[Arch, ...]
    limit: str
    measure: Measure
    help: str
    source: str = REPORT
    judged: Judged = Judged.ANYWHERE


_EVERYWHERE = (
    "ABS ADD ARGMAX ARITHMETIC_RIGHT_SHIFT AVG_POOL2D CAST CLAMP CLZ CONCAT CONST CONST_SHAPE "
    "CONV2D CONV3D DEPTHWISE_CONV2D IDENTITY LOGICAL_LEFT_SHIFT MATMUL MAXIMUM MAX_POOL2D MINIMUM "
    "MUL NEGATE PAD REDUCE_MAX REDUCE_MIN REDUCE_SUM RESCALE RESHAPE RESIZE REVERSE SLICE SUB "
    "TABLE TILE TRANSPOSE TRANSPOSE_CONV2D VARIABLE VARIABLE_READ VARIABLE_WRITE"
)
_ON_U85 = (
    "BITWISE_AND BITWISE_NOT BITWISE_OR BITWISE_XOR COND_IF EQUAL GATHER GREATER GREATER_EQUAL "
    "INTDIV LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGICAL_RIGHT_SHIFT LOGICAL_XOR REDUCE_ALL "
    "REDUCE_ANY SCATTER SELECT WHILE_LOOP"
)

OPERATIONS: dict[str, tuple[Arch, ...]] = dict(
    sorted(
        [(kind, ALL) for kind in _EVERYWHERE.split()] + [(kind, U85) for kind in _ON_U85.split()]
    )
)
"""TOSA operations that an NPU has a form of, and the families whose NPU has it.

DEPTHWISE_CONV2D is not in Vela's list, but compiles. Those that TOSA has for floating-point
numbers only are absent.
"""

CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})
MOVES = frozenset({"IDENTITY", "RESHAPE", "TRANSPOSE"})
"""Operations that the passes may take away from between two others."""


FOLDED_STEPS = 6
"""Operations, one after another, that are taken to make a constant of constants."""


def operations(kinds: str) -> frozenset[str]:
    """Give the operations of a list in a text."""
    return frozenset(kinds.split())


def input_type(*wanted: DType) -> Measure:
    """Measure whether the first operand has one of some types."""

    def measure(operation: Operation) -> str | None:
        dtype = operation.operands[0].dtype
        return None if dtype in wanted else dtype.value

    return measure


def is_fixed(value: Value, steps: int = FOLDED_STEPS) -> bool:
    """Whether a value is a constant, or is one once constants are folded.

    Where more steps lead to it than are looked at, it counts as one.
    """
    producer = value.producer
    if producer is None:
        return False
    if producer.kind in CONSTANTS or steps == 0:
        return True
    if not producer.operands or producer.kind == "CUSTOM":
        return False
    return all(is_fixed(operand, steps - 1) for operand in producer.operands)


def by(extents: tuple[int, ...]) -> str:
    """Write extents, or a step along several axes."""
    return "x".join(map(str, extents))
