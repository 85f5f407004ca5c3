"""How a quantised network differs from the floating-point one that it was made of, by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

BINS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Upper edges of a histogram of absolute errors, in steps of the quantised tensor; the last bin is
what is beyond. A single rounding is half a step."""


class InputSource(Enum):
    """Where inputs come from, in the words of the report."""

    USER = "the user's own"
    EXAMPLE = "the example that it was exported with"
    MADE = "made"


@dataclass(frozen=True, slots=True)
class LayerPrecision:
    """A layer of both networks.

    index, kind, name  of the operator of the quantised network
    counterpart        what it is called in the floating-point one
    elements           compared, over all inferences
    sqnr_db            signal to quantisation noise; None where there is no noise, or no signal
    largest, mean      absolute error, in the units of the floating-point network
    step               what one step of the integers stands for
    bins               elements by their error in steps: up to each of `BINS`, and beyond
    saturated          the part of the numbers that lie beyond the range of the integers, 0 to 1
    low, high          least and largest number of the floating-point network
    """

    index: int
    kind: str
    name: str
    counterpart: str
    elements: int
    sqnr_db: float | None
    largest: float
    mean: float
    step: float
    bins: tuple[int, ...]
    saturated: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Precision:
    """A quantised network beside its floating-point one.

    inputs     inferences
    source     where they come from
    layers     those of both, in the order of execution
    unmatched  layers of the quantised network without a counterpart: index, kind and name
    """

    model: str
    floating: str
    inputs: int
    source: InputSource
    layers: tuple[LayerPrecision, ...]
    unmatched: tuple[tuple[int, str, str], ...]

    @property
    def real_data(self) -> bool:
        """Whether the inputs were the user's."""
        return self.source is InputSource.USER

    @property
    def worst_first(self) -> tuple[LayerPrecision, ...]:
        """Layers by their signal to noise, the lowest first."""
        return tuple(sorted(self.layers, key=_badness))


def _badness(layer: LayerPrecision) -> float:
    return float("inf") if layer.sqnr_db is None else layer.sqnr_db


def as_dict(precision: Precision) -> dict[str, Any]:
    """Return it as JSON-ready data, the layers worst first."""
    return {
        "model": precision.model,
        "floating": precision.floating,
        "inputs": precision.inputs,
        "real_data": precision.real_data,
        "source": precision.source.name.lower(),
        "bin_edges_steps": list(BINS),
        "layers": [asdict(layer) for layer in precision.worst_first],
        "unmatched": _rows(precision.unmatched),
    }


def _rows(pairs: Sequence[tuple[int, str, str]]) -> list[dict[str, Any]]:
    return [{"index": index, "kind": kind, "name": name} for index, kind, name in pairs]
