"""What a compiled network costs: performance data of its passes, and an estimate of its cycles.

It is for comparing two streams and for placing a region. The figures follow from the commands, the
sizes of encoded weights and the capabilities, so a stream that was read from a file has them too,
and Arm's own print of them is an oracle to the byte. Cycles are a model, the one by which Arm's
library of release 25.03 chooses plans: they are never a measurement, nothing here knows a clock.

It must not know how a stream was made: no schedule, no work graph. It reads what the stream says,
as an inspector would, so that it cannot flatter the compiler.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.timing.cycles import (
    SHORTEST_STRIPE_CYCLES,
    Estimated,
    PassCycles,
    cycles,
    estimate,
    pass_cycles,
    pass_units,
    statistics_of,
)
from mizzen.targets.ethos_n.timing.statistics import Pass, Statistics, as_data, passes_of

__all__ = [
    "SHORTEST_STRIPE_CYCLES",
    "Estimated",
    "Pass",
    "PassCycles",
    "Statistics",
    "as_data",
    "cycles",
    "estimate",
    "pass_cycles",
    "pass_units",
    "passes_of",
    "statistics_of",
]
