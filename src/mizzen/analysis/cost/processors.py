"""What operators cost on each core, as a table: cycles by class of work, with source and error.

All are of kernels of CMSIS-NN where it has the operator, compiled for speed, as TensorFlow Lite
Micro has them. Caches, flash and other code move real figures; the table says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import did_you_mean, fail


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
    output       per output element of these, for its bias, scale and clip
    pool         per element under a window
    elementwise  per output element, scaled again
    function     per element of what needs an exponential or a division
    move         per byte that is copied in order
    other        per output element of kernels that are not optimised
    call         per operator, whatever its size
    error        factor within which networks of the first classes were found
    source       of the first four; the others are derived from the loops of the kernels, and are
                 within a factor of 3 at best
    """

    name: str
    convolution: float
    depthwise: float
    dense: float
    output: float
    pool: float
    elementwise: float
    function: float
    move: float
    other: float
    call: int
    error: float
    source: str

    def cycles(self, kind: Class, amount: int, outputs: int = 0) -> float:
        """Return the cycles of an operator: its amount in the unit of its class, and outputs."""
        match kind:
            case Class.CONVOLUTION:
                return self.call + self.convolution * amount + self.output * outputs
            case Class.DEPTHWISE:
                return self.call + self.depthwise * amount + self.output * outputs
            case Class.DENSE:
                return self.call + self.dense * amount + self.output * outputs
            case Class.POOL:
                return self.call + self.pool * amount
            case Class.ELEMENTWISE:
                return self.call + self.elementwise * amount
            case Class.FUNCTION:
                return self.call + self.function * amount
            case Class.MOVE:
                return self.call + self.move * amount
            case Class.OTHER:
                return self.call + self.other * amount


TINY_M4 = "MLPerf Tiny 1.1, Krai, NUCLEO-L4R5ZI at 120 MHz, microTVM with CMSIS-NN"
TINY_M33 = "MLPerf Tiny 1.1, Krai, nRF5340 DK at 128 MHz, microTVM with CMSIS-NN"
TINY_M85 = "MLPerf Tiny 1.2, Renesas, EK-RA8D1 at 480 MHz, TensorFlow Lite Micro with CMSIS"
ALIF_M55 = "MobileNetV2 on Alif E8, ExecuTorch with CMSIS-NN, pytorch/executorch issue 17651"

PROCESSORS: dict[str, Processor] = {
    processor.name: processor
    for processor in (
        #          name          conv  dw   dense out  pool elem func   move  other call error
        Processor("cortex-m4", 3.55, 7.1, 3.91, 25.0, 4.0, 25.0, 120.0, 1.0, 60.0, 1000, 1.1,
                  TINY_M4),
        Processor("cortex-m33", 3.15, 6.3, 3.05, 12.0, 4.0, 20.0, 115.0, 1.0, 55.0, 1000, 1.1,
                  TINY_M33),
        Processor("cortex-m55", 0.20, 1.69, 0.96, 18.9, 1.0, 9.1, 80.0, 0.25, 45.0, 900, 1.4,
                  ALIF_M55),
        Processor("cortex-m85", 0.22, 0.87, 0.96, 15.0, 0.7, 6.0, 55.0, 0.2, 30.0, 700, 1.2,
                  TINY_M85),
    )
}  # fmt: skip
"""Cores by name. Convolutions, fully connected layers and outputs are least squares over the
source's networks or operators; a depthwise product counts 2 (M4, M33) or 4 (M85) of a convolution,
as the networks do not tell them apart. `dense` of M55 is M85's, `elementwise` its QUANTIZE."""


def find_processor(name: str) -> Processor:
    """Return the core of that name. E571 if there is no row for it."""
    processor = PROCESSORS.get(name.lower())
    if processor is None:
        known = list(PROCESSORS)
        raise fail(
            "E571",
            f"the core must be {', '.join(known[:-1])} or {known[-1]}, not {name!r}",
            help=did_you_mean(name, known),
        )
    return processor
