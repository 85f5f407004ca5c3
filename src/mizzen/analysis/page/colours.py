"""Which colour means what, on the whole page; names stand beside them everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mizzen.diagnostics import Device
from mizzen.report.cost import Bound, OperationCost
from mizzen.report.memory import Use

BOUNDS: Mapping[Bound, int] = {
    Bound.MAC: 0,
    Bound.ROUNDING: 4,
    Bound.WEIGHTS: 3,
    Bound.OUTPUT: 2,
    Bound.SRAM: 6,
    Bound.FLASH: 5,
    Bound.DRAM: 8,
    Bound.WAITING: 7,
    Bound.FILL: 9,
    Bound.CPU: 1,
}
USES: Mapping[Use, int] = {
    Use.INPUT: 2,
    Use.OUTPUT: 9,
    Use.FEATURE_MAP: 0,
    Use.STATE: 8,
    Use.BUFFER: 3,
    Use.CPU: 1,
    Use.CONSTANTS: 6,
    Use.RUNTIME: 7,
}
DEVICES: Mapping[Device, int] = {Device.NPU: 0, Device.CPU: 5}


NO_TIME = 10
"""Of what happens beside something else and adds no time."""


def colour_of(operation: OperationCost) -> int:
    """Return the colour of what an operation is bound by."""
    return BOUNDS[operation.bound] if operation.causes else NO_TIME


def bounds_legend(operations: Iterable[OperationCost]) -> tuple[tuple[int, str], ...]:
    """Return the colours of the bounds that occur, with their names."""
    colours = {colour_of(operation) for operation in operations}
    names = {colour: bound.value for bound, colour in BOUNDS.items()}
    names[NO_TIME] = "adds no time"
    return tuple((colour, name) for colour, name in names.items() if colour in colours)


def uses_legend(uses: Iterable[Use]) -> tuple[tuple[int, str], ...]:
    """Return the colours of those that occur, with their names."""
    there = set(uses)
    return tuple((colour, use.value) for use, colour in USES.items() if use in there)
