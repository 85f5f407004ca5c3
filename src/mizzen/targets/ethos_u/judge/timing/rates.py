"""Rates of each configuration's units, as tables.

All are in cycles of the NPU. The output unit's are per element that it writes; U65-512 has two of
everything, so that its rates are half of U65-256's.

Ref: Vela 5.2, npu_performance.py and its C++ core's tables of performance (rates, bias
fetch, decoder); Ethos-U55, U65 and U85 technical reference manuals (microblocks).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.hazards.blocks import Shape


@dataclass(frozen=True, slots=True)
class OutputRates:
    """A row: cycles per output element of one core of U55 or U65.

    word_unary, word_binary  elementwise operations on 32-bit input
    multiply_to_word         MUL to 32 bits
    multiply                 other MUL, and whatever has 40-bit accumulators
    add_simple, add          ADD and SUB, where both operands are scaled in 16 bits or one in 32
    maximum                  MAX pooling
    other                    everything else
    table, relu              least of an activation: tables, tanh and sigmoid; a narrower clip
    """

    word_unary: float
    word_binary: float
    multiply_to_word: float
    multiply: float
    add_simple: float
    add: float
    maximum: float
    other: float
    table: float
    relu: float


OUTPUT_RATES: dict[int, OutputRates] = {
    #             unary  binary to word multiply simple add  max other table relu
    32: OutputRates(2.0, 3.0, 3.0, 3.0, 4.0, 6.0, 1.0, 2.0, 1.0, 1.0),
    64: OutputRates(1.0, 1.5, 1.5, 1.5, 2.0, 3.0, 0.5, 1.0, 1.0, 1.0),
    128: OutputRates(0.75, 1.25, 0.75, 0.75, 1.0, 1.5, 0.25, 0.5, 1.0, 0.5),
    256: OutputRates(0.625, 1.125, 0.5, 0.375, 0.5, 0.75, 0.125, 0.25, 1.0, 0.25),
}
"""U55 and U65, by MACs of a core."""


@dataclass(frozen=True, slots=True)
class OutputRatesU85:
    """A row: cycles per output element of a U85.

    byte, half, word, double  by the width of the output
    narrowing  32-bit elementwise operations with two inputs that give less than 32 bits
    words      those that give 32 bits
    activation what a table takes at least
    turned     the same where height and width are exchanged, or the width reversed
    divide     DIV
    """

    byte: float
    half: float
    word: float
    double: float
    narrowing: float
    words: float
    activation: float
    turned: float
    divide: float = 33.0


OUTPUT_RATES_U85: dict[int, OutputRatesU85] = {
    #                      8 bits   16      32     64     narrow  words  activ.   turned
    128: OutputRatesU85(0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 0.5, 1.0),
    256: OutputRatesU85(0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.25, 0.5),
    512: OutputRatesU85(0.125, 0.125, 0.25, 0.5, 0.25, 0.25, 0.125, 0.25),
    1024: OutputRatesU85(0.0625, 0.125, 0.25, 0.5, 0.125, 0.25, 0.0625, 0.125),
    2048: OutputRatesU85(0.03125, 0.0625, 0.125, 0.25, 0.0625, 0.125, 0.03125, 0.0625),
}
"""U85, by MACs."""

ROW_MICROBLOCK: Shape = (1, 4, 8)
"""What a core of 256 MACs computes at once where the output has one row of even width."""

INPUT_DEPTH = 8
"""Input channels that are multiplied at once, 8-bit ones."""
SLOTS = 4
"""Cycles of U55 and U65 for a position of the weights: 4 kernel elements, or 32 channels."""

DECODED_WEIGHTS_PER_CYCLE = 8
"""Weights that a decoder gives per cycle where few of them are zeros."""
MOST_DECODED_WEIGHTS_PER_CYCLE = 32
"""The same where nearly all are."""
FAST_WEIGHTS_PER_CYCLE, FAST_PALETTE_WEIGHTS_PER_CYCLE = 32, 64
"""Weights that are decoded per cycle in the fast format, and where they have few values."""
PALETTE_BITS = 4
"""Of a weight in the fast format where there are at most 16 values."""

BIAS_BYTES = 10
BIAS_PREFETCH_BYTES = 256
"""A record of bias and scale; so many bytes of them are asked for ahead."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Cycles that accumulators need before they take the next product, 32-bit and wider ones."""

    word: int
    wide: int


DELAYS: dict[int, Delay] = {32: Delay(3, 7), 64: Delay(2, 3), 128: Delay(2, 3)}
"""By MACs of a core; those with more need 2."""
LONGEST_PIPELINE = Delay(2, 2)


@dataclass(frozen=True, slots=True)
class Buffers:
    """A row: what each reader of a U85 can hold of what comes in any order, in 16 bytes."""

    transfer: int
    weights: int
    fast_weights: int
    input: int
    scales: int


BUFFER_UNIT_BYTES = 16

BUFFERS_U85: dict[int, Buffers] = {
    #           transfer weights fast input scales
    128: Buffers(64, 128, 128, 104, 16),
    256: Buffers(104, 128, 128, 128, 16),
    512: Buffers(128, 256, 256, 128, 16),
    1024: Buffers(256, 416, 208, 256, 16),
    2048: Buffers(256, 512, 256, 256, 16),
}
"""By MACs. Ref: Vela 5.2, the C++ core's limits of channels."""
