"""What operators cost on each core, as a table: cycles by class of work.

Each number is of TensorFlow Lite Micro with CMSIS-NN where that has the operator.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import fail


class Class(Enum):
    """Kinds of operators by what their time grows with."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise convolution"
    DENSE = "fully connected"
    POOL = "pooling"
    ELEMENTWISE = "elementwise"
    FUNCTION = "function"
    MOVE = "data movement"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Processor:
    """A row: cycles of a core.

    convolution, depthwise, dense  per multiply-accumulate of 8 bits
    pool         per element under a window
    elementwise  per output element, requantised
    function     per element of what needs an exponential or a division
    move         per byte that is copied in order
    other        per output element of kernels that are not optimised
    call         per operator, whatever its size
    error        factor within which an operator's real time is expected
    source       where the numbers come from
    """

    name: str
    convolution: float
    depthwise: float
    dense: float
    pool: float
    elementwise: float
    function: float
    move: float
    other: float
    call: float
    error: float
    source: str

    def per_unit(self, kind: Class) -> float:
        """Return the cycles of a unit of work of a class."""
        match kind:
            case Class.CONVOLUTION:
                return self.convolution
            case Class.DEPTHWISE:
                return self.depthwise
            case Class.DENSE:
                return self.dense
            case Class.POOL:
                return self.pool
            case Class.ELEMENTWISE:
                return self.elementwise
            case Class.FUNCTION:
                return self.function
            case Class.MOVE:
                return self.move
            case Class.OTHER:
                return self.other


DERIVED = "derived from the core's width of vectors and the loops of CMSIS-NN"

PROCESSORS: dict[str, Processor] = {
    row.name: row
    for row in (
        #         name          conv dw   dense pool elem  func   move other call error
        Processor("cortex-m4", 3.0, 6.0, 2.5, 4.0, 20.0, 120.0, 1.0, 60.0, 1000, 2.5, DERIVED),
        Processor("cortex-m33", 2.8, 5.5, 2.3, 4.0, 19.0, 115.0, 1.0, 55.0, 1000, 2.5, DERIVED),
        Processor("cortex-m55", 0.45, 1.2, 0.5, 0.8, 3.5, 80.0, 0.25, 45.0, 900, 2.5, DERIVED),
        Processor("cortex-m85", 0.35, 0.9, 0.4, 0.6, 2.5, 55.0, 0.2, 30.0, 700, 2.5, DERIVED),
    )
}
"""Cores by name."""


def find_processor(name: str) -> Processor:
    """Return the core of that name. E571 if there is no row for it."""
    row = PROCESSORS.get(name.lower())
    if row is None:
        known = list(PROCESSORS)
        close = difflib.get_close_matches(name.lower(), known, n=1)
        raise fail(
            "E571",
            f"the core must be {', '.join(known[:-1])} or {known[-1]}, not {name!r}",
            help=f"did you mean {close[0]}?" if close else None,
        )
    return row
