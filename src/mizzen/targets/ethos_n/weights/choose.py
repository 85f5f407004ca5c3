"""Chooses each stream's coding after that of the stream before it on the same output generator.

What is as it was before need not be sent again, so the choice depends on the one before.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mizzen.targets.ethos_n.weights.format import (
    LARGEST_PALETTE,
    LEAST_ENTRY_BITS,
    NO_RUNS,
    UNCODED,
)
from mizzen.targets.ethos_n.weights.search import Codings
from mizzen.targets.ethos_n.weights.symbols import Numbers

_PALETTE = struct.Struct(f"<{2 + LARGEST_PALETTE}H")
_BITS_BEFORE_ALL = 7


class Parameters(NamedTuple):
    """How one stream is coded; `palette` is size, bits and entries as bytes, to be compared."""

    zero_divisor: int
    weight_divisor: int
    truncated: bool
    offset: int
    palette: bytes


class Candidate(NamedTuple):
    """A coding that a stream may have.

    cost          bits without the palette
    in_palette    entries of the palette that stand for weights
    palette_cost  bits of the palette
    """

    cost: int
    in_palette: int
    palette_cost: int
    parameters: Parameters


class Choice(NamedTuple):
    """The coding that a stream has, and what of it must be sent."""

    parameters: Parameters
    in_palette: int
    parameters_follow: bool
    palette_follows: bool

    @property
    def has_runs(self) -> bool:
        """Whether zeros are coded as runs."""
        return self.parameters.zero_divisor != NO_RUNS


def candidates(codings: Codings) -> list[Candidate]:
    """Return each stream's coding as an object."""
    size, bits = codings.palette_size[:, None], codings.palette_bits[:, None]
    packed = np.concatenate([size, bits, codings.palette], axis=1).astype("<u2").tobytes()
    palettes = [packed[at : at + _PALETTE.size] for at in range(0, len(packed), _PALETTE.size)]
    parameters = zip(
        codings.zero_divisor.tolist(), codings.weight_divisor.tolist(),
        codings.truncated.tolist(), codings.offset.tolist(), palettes, strict=True,
    )  # fmt: skip
    palette_cost = codings.palette_size * (codings.palette_bits + LEAST_ENTRY_BITS)
    return [
        Candidate(cost, used, palette_bits, Parameters._make(row))
        for cost, used, palette_bits, row in zip(
            codings.cost.tolist(), codings.in_palette.tolist(), palette_cost.tolist(), parameters,
            strict=True,
        )
    ]  # fmt: skip


def palette_table(choices: list[Choice]) -> Numbers:
    """Return size, bits and entries of each stream's palette, [streams, 34]."""
    packed = b"".join(choice.parameters.palette for choice in choices)
    return np.frombuffer(packed, "<u2").reshape(len(choices), -1).astype(np.int64)


@dataclass(slots=True)
class Chooser:
    """Remembers the last coding of each output generator."""

    _last: dict[int, Parameters] = field(default_factory=dict[int, Parameters])

    def choose(
        self, og: int, afresh: bool, plain: Candidate, runs: Candidate | None, only_zeros: bool
    ) -> Choice:
        """Choose the cheaper coding; of equals the one without runs.

        `afresh`: nothing of the stream before is known when this one is read. A stream of zeros
        alone may keep all of the coding before it but the divisor of the runs.
        """
        before = self._last.get(og)
        afresh = afresh or before is None
        before = before or _BEFORE_ALL
        choice, cost = _as_found(plain, before, afresh)
        if runs is not None:
            kept = _as_before if only_zeros else _as_found
            other, other_cost = kept(runs, before, afresh)
            choice = other if other_cost < cost else choice
        self._last[og] = choice.parameters
        return choice


_BEFORE_ALL = Parameters(
    NO_RUNS, UNCODED, False, 0, _PALETTE.pack(0, _BITS_BEFORE_ALL, *[0] * LARGEST_PALETTE)
)


def _as_found(candidate: Candidate, before: Parameters, afresh: bool) -> tuple[Choice, int]:
    found = candidate.parameters
    palette_follows = afresh or found.palette != before.palette
    choice = Choice(found, candidate.in_palette, afresh or found != before, palette_follows)
    return choice, candidate.cost + (candidate.palette_cost if palette_follows else 0)


def _as_before(candidate: Candidate, before: Parameters, afresh: bool) -> tuple[Choice, int]:
    kept = before._replace(zero_divisor=candidate.parameters.zero_divisor)
    return Choice(kept, 0, afresh or kept != before, afresh), candidate.cost
