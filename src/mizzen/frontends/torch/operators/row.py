"""What a row of the registry says."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Role(Enum):
    """How the range of an operator's result relates to those of its operands."""

    WEIGHTED = auto()
    """Operands are activation, weight, bias; the result has a range of its own."""
    COMPUTED = auto()
    """The result has a range of its own."""
    DIVIDED = auto()
    """The same, and operands have scales of few bits, so that their quotients are exact."""
    SHARED = auto()
    """The result's values are among the operands' (or between them): one range for all."""
    FIXED = auto()
    """The result's range is known beforehand."""
    COMPARED = auto()
    """Operands share a range; the result is not a number."""
    CONSUMED = auto()
    """The operand has its range; the result is an index."""
    RECURRENT = auto()
    """Operands are a projection, first states and weights; the states share ranges with results."""
    NORMALIZED = auto()
    """A convolution with batch normalization, in training."""
    STATE = auto()
    """Reads a buffer that the program writes."""
    TRANSPARENT = auto()
    """Nothing is computed: the operand itself goes on."""


@dataclass(frozen=True, slots=True)
class Range:
    """A known range of results: scale and zero point for 8 bits; for 16 the zero point is 0."""

    scale: float
    zero_point: int
    wide_scale: float = 2.0**-15


UNIT = Range(1 / 256, -128)
SIGNED_UNIT = Range(1 / 128, 0)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why an operator has no lowering; ``{kind}`` in the reason is the operator's name."""

    reason: str
    help: str | None = None


CPU = "PyTorch computes it on the CPU; use operators that the support list names"


def missing(why: str) -> Missing:
    """Say why an operator has no form at all."""
    return Missing(f"there is no TOSA form of {{kind}} here: {why}", CPU)


Form = str | Missing
"""A lowering, ``module:function`` below `mizzen.frontends.torch`, or why there is none."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A row: overloads that are treated alike, aliases among them; the first gives the name.

    name           of the first overload, without it: ``add``
    overloads      ``add.Tensor``; those of another library than ATen begin with its name
    role           what quantisation makes of it; None where nothing is quantised
    integers       its integer lowering
    floats         its floating-point lowering
    decomposition  ``module:function`` below `mizzen.quantize.decompose`, which takes it apart
                   before calibration
    range          of its results, where known beforehand
    channel_axis   of its weight: that of the output channels
    cuttable       whether an activation may cut its result before that is quantised
    ends_at_one    whether its domain ends at 1, which no operand may be rounded beyond
    is_source      whether it gives a constant whatever the values of its operands are
    """

    name: str
    overloads: tuple[str, ...]
    role: Role | None
    integers: Form
    floats: Form
    decomposition: str | None = None
    range: Range | None = None
    channel_axis: int | None = None
    cuttable: bool = False
    ends_at_one: bool = False
    is_source: bool = False


def row(
    overloads: str,
    role: Role | None = None,
    *,
    both: Form | None = None,
    integers: Form | None = None,
    floats: Form | None = None,
    **rest: Any,
) -> Operator:
    """Return a row. A lowering without a function's name is the function named as the operator.

    overloads  separated by spaces
    both       the lowering of both profiles, in a module that both share
    """
    names = tuple(overloads.split())
    operator = names[0].rpartition(".")[0].rpartition(".")[2]
    whole = _function(both, "", operator)
    one = whole if integers is None else _function(integers, "int_lowering.int_", operator)
    other = whole if floats is None else _function(floats, "fp_lowering.fp_", operator)
    assert one is not None, overloads
    assert other is not None, overloads
    return Operator(operator, names, role, one, other, **rest)


def each(names: str, role: Role | None = None, **rest: Any) -> Iterator[Operator]:
    """Return a row for each of some names, which are treated alike; `|` puts aliases after one."""
    for name in names.split():
        yield row(" ".join(_with_overload(part) for part in name.split("|")), role, **rest)


def _with_overload(name: str) -> str:
    return name if "." in name else f"{name}.default"


def _function(form: Form | None, folder: str, operator: str) -> Form | None:
    if not isinstance(form, str):
        return form
    module, _, function = form.partition(":")
    name = function or (f"{operator}_" if hasattr(builtins, operator) else operator)
    return f"{folder}{module}:{name}"
