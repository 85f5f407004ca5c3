"""What an inference takes of energy, by the figures of a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnergyFigure:
    """A figure of a board.

    of      ``idle``: mW of the board while nothing is computed; ``mac``: pJ of a
            multiply-accumulate; ``sram``, ``flash``, ``dram``: pJ of a byte that is read or written
    error   factor within which it is, 1 or more
    source  of the figure
    """

    of: str
    value: float
    error: float
    source: str


@dataclass(frozen=True, slots=True)
class InferenceEnergy:
    """Energy of an inference in mJ, the board's idle power while it runs included.

    low_mj, high_mj  with each figure at the end of its error
    parts_mj         by the figures that they come of
    sources          of the figures, each once
    """

    mj: float
    low_mj: float
    high_mj: float
    parts_mj: Mapping[str, float]
    sources: tuple[str, ...]
