"""Performance data of a compiled network, and an estimate of the cycles that it takes."""

from __future__ import annotations

from mizzen.targets.ethos_n.estimate.compressible import with_compressible_weights
from mizzen.targets.ethos_n.estimate.latency import cycles, pass_cycles
from mizzen.targets.ethos_n.estimate.options import EstimationOptions
from mizzen.targets.ethos_n.estimate.passes import Pass, passes_of
from mizzen.targets.ethos_n.estimate.performance import (
    PerformanceData,
    estimate,
    not_estimated,
    statistics_of,
)
from mizzen.targets.ethos_n.estimate.text import as_json

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
