"""How long a command stream takes, from its decoded commands alone.

It is an event simulation: the front end starts operations in order; kernels go block by block
through input, MAC array, weight decoder, output unit and writing; transfers run beside them; all
share the buses of a system configuration. So it judges any stream, whatever made it, and never sees
what its compiler thought.

It must not know how a stream is made, nor compute what a stream computes. Every constant of it is a
row of a table with its source; none is fitted to a measurement of a network.
"""

from mizzen.targets.ethos_u.judge.timing.buses import Held
from mizzen.targets.ethos_u.judge.timing.estimate import cycles_of, estimate, steps_of
from mizzen.targets.ethos_u.judge.timing.events import events_of
from mizzen.targets.ethos_u.judge.timing.rates import INPUT_DEPTH
from mizzen.targets.ethos_u.judge.timing.stages import Cause
from mizzen.targets.ethos_u.judge.timing.timeline import Timed
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, Step, TransferWork, WorkKind

__all__ = [
    "INPUT_DEPTH",
    "Cause",
    "Held",
    "KernelWork",
    "Step",
    "Timed",
    "TransferWork",
    "WorkKind",
    "cycles_of",
    "estimate",
    "events_of",
    "steps_of",
]
