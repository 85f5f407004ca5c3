"""What a scale may be: a RESCALE of the graph, or of a kind that has nothing to do with one.

Kinds besides RESCALEs: a power of two (an identity, and units that an operation chooses for its own
sums), the average of a window, and what the kernel of a curve scales by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from mizzen.compiler.ethos_u.constants.surroundings import (
    Rational,
    after,
    before,
    rational,
    rationals,
)
from mizzen.frontends.tflite.context import DOMAIN, note_of
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.ops.tensor import AvgPool2d
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.judge.witness import (
    SaidConvolution,
    SaidElementwise,
    SaidMatrixProduct,
    SaidOperation,
    SaidPooling,
    SaidResize,
    SaidScale,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, PoolingMode

AVERAGE_BITS = 28
"""To which the scale of an average is one over the number of elements: 31, but 3 of rounding."""


class Kind(Enum):
    """What a scale is; the value is the word for people."""

    POWER = "a power of two"
    RESCALE = "a RESCALE of the graph"
    AVERAGE = "the average of a window"
    CURVE = "a curve of the machine"
    UNKNOWN = "of no kind that is known"


def scales_of(said: SaidOperation) -> Iterator[tuple[str, SaidScale]]:
    """Yield the single scales that an operation uses, with the names of their fields."""
    match said:
        case SaidPooling(mode=PoolingMode.MAX) | SaidConvolution():
            return
        case SaidPooling(scale=scale) | SaidMatrixProduct(scale=scale) | SaidResize(scale=scale):
            yield "scale", scale
        case SaidElementwise():
            yield from ((name, scale) for name, scale in _of_operands(said) if scale is not None)
            if said.scale is not None:
                yield "scale", said.scale


def _of_operands(said: SaidElementwise) -> Iterator[tuple[str, SaidScale | None]]:
    if said.operand_scales is not None:
        for name, scale in zip(("ifm", "ifm2"), said.operand_scales, strict=True):
            own = None if scale is None else SaidScale(scale.multiplier, scale.shift)
            yield f"scale of {name}", own
    elif said.mode in (ElementwiseMode.ADD, ElementwiseMode.SUB):
        yield "scale of ifm", said.scale_a
        yield "scale of ifm2", said.scale_b


def kind_of(
    scale: SaidScale, said: SaidOperation, operation: Operation, region: frozenset[int]
) -> Kind:
    """Return what a scale is, of an operation of the stream that was made for one of the graph.

    region  `multipliers_of` the region, where it may be of a RESCALE that is not around it

    Sums take one operand with more bits, by a power of two that the simulator knows: so of a
    RESCALE the odd multiplier is compared alone.
    """
    odd, _ = factor = rational(scale.multiplier, scale.shift)
    if odd == 1:
        return Kind.POWER
    if isinstance(operation, Custom) and factor in curves_of(operation):
        return Kind.CURVE
    if odd in region or any(odd == other for other, _ in _around(operation)):
        return Kind.RESCALE
    if isinstance(operation, AvgPool2d) and _is_average(factor, said):
        return Kind.AVERAGE
    return Kind.UNKNOWN


def multipliers_of(operations: Iterable[Operation]) -> frozenset[int]:
    """Return the odd multipliers of all RESCALEs among operations."""
    return frozenset(odd for odd, _ in _of(operations))


def curves_of(operation: Custom) -> list[Rational]:
    """Return by what an operator's kernel scales before a curve, as the front-end says it."""
    if operation.domain_name != DOMAIN:
        return []
    options = note_of(operation).options
    if "multiplier" not in options or "shift" not in options:
        return []
    return [rational(int(options["multiplier"]), int(options["shift"]))]


def _around(operation: Operation) -> Iterator[Rational]:
    yield from _of((operation, *before(operation)))
    for result in operation.results:
        yield from _of(after(result, lambda _: False))


def _of(operations: Iterable[Operation]) -> Iterator[Rational]:
    for operation in operations:
        if isinstance(operation, Rescale):
            yield from rationals(operation)


def _is_average(factor: Rational, said: SaidOperation) -> bool:
    """Whether a scale is one over the elements of a window."""
    if not isinstance(said, SaidPooling):
        return False
    odd, shift = factor
    if shift < 0:
        return False
    count = said.kernel.height * said.kernel.width
    return abs(odd * count - (1 << shift)) << AVERAGE_BITS <= 1 << shift
