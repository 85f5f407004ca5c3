"""Performance data of a compiled network, and an estimate of the cycles that it takes."""

from __future__ import annotations

from mizzen.targets.ethos_n.timing.compressible import with_compressible_weights
from mizzen.targets.ethos_n.timing.cycles import (
    PerformanceData,
    cycles,
    estimate,
    not_estimated,
    pass_cycles,
    statistics_of,
)
from mizzen.targets.ethos_n.timing.statistics import EstimationOptions, Pass, passes_of
from mizzen.targets.ethos_n.timing.text import as_json

__all__ = [
    "EstimationOptions",
    "Pass",
    "PerformanceData",
    "as_json",
    "cycles",
    "estimate",
    "not_estimated",
    "pass_cycles",
    "passes_of",
    "statistics_of",
    "with_compressible_weights",
]
