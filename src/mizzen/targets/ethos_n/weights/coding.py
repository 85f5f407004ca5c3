"""The chosen codings of streams as arrays, and what symbols are in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.weights import format as form
from mizzen.targets.ethos_n.weights.choose import Choice, palette_table
from mizzen.targets.ethos_n.weights.symbols import Flags, Numbers, Streams, bit_length


@dataclass(frozen=True, slots=True)
class ChosenCodings:
    """The fields of the header, by stream, and what of them is sent.

    palette     [streams, 32] symbols
    in_palette  entries that stand for weights
    """

    zero_divisor: Numbers
    weight_divisor: Numbers
    truncated: Flags
    offset: Numbers
    palette_size: Numbers
    palette_bits: Numbers
    palette: Numbers
    in_palette: Numbers
    parameters_follow: Flags
    palette_follows: Flags

    @classmethod
    def of(cls, choices: list[Choice]) -> ChosenCodings:
        """Put choices side by side."""
        table = palette_table(choices)
        rows = np.array([choice.parameters[:4] + choice[1:] for choice in choices], np.int64)
        return cls(
            zero_divisor=rows[:, 0],
            weight_divisor=rows[:, 1],
            truncated=rows[:, 2] > 0,
            offset=rows[:, 3],
            palette_size=table[:, 0],
            palette_bits=table[:, 1],
            palette=table[:, 2:],
            in_palette=rows[:, 4],
            parameters_follow=rows[:, 5] > 0,
            palette_follows=rows[:, 6] > 0,
        )

    @property
    def uses_runs(self) -> Flags:
        """Whether zeros are coded as runs."""
        return self.zero_divisor != form.NO_RUNS

    @property
    def is_uncoded(self) -> Flags:
        """Whether symbols have no unary bits."""
        return self.weight_divisor == form.UNCODED

    @property
    def remainder_bits(self) -> Numbers:
        """Bits of a symbol behind its unary bits."""
        index = np.maximum(bit_length(self.palette_size - 1), 1)
        plain = np.where(self.palette_size, index, self.palette_bits + form.LEAST_ENTRY_BITS)
        return np.where(self.is_uncoded, plain, self.weight_divisor)


def code(symbols: Streams, coding: ChosenCodings) -> Streams:
    """Replace symbols by what the stream has for them; leave out zeros that are coded as runs."""
    width = int(symbols.values.max(initial=0)) + 1
    streams = len(symbols.counts)
    table = np.arange(width) + (coding.palette_size - coding.offset)[:, None]
    row, rank = np.nonzero(np.arange(form.LARGEST_PALETTE) < coding.in_palette[:, None])
    table[row, coding.palette[row, rank]] = rank
    values = table.ravel()[symbols.values + symbols.spread(np.arange(streams) * width)]
    if not coding.uses_runs.any():
        return Streams(values, symbols.counts)
    kept = (symbols.values != 0) | ~symbols.spread(coding.uses_runs)
    bounds = np.concatenate([[0], np.cumsum(kept)])
    counts = bounds[symbols.starts + symbols.counts] - bounds[symbols.starts]
    return Streams(values[kept], counts)


def coded_runs(runs: Streams, coding: ChosenCodings) -> Streams:
    """Keep the runs of those streams whose zeros are coded as runs."""
    return Streams(runs.values[runs.spread(coding.uses_runs)], runs.counts * coding.uses_runs)
