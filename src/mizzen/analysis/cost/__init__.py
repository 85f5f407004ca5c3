"""What an artifact costs: every operation's time, what bounds it, and what crosses the buses.

The NPU's part is timed from its command stream by its family's own model, so that any stream can be
judged, whatever made it. CPU operators get an estimate of their core's. What an inference takes by
it is the one figure that every report tells: the compiler asks here too, so nothing here imports
the compiler.
"""

from mizzen.analysis.cost.processors import PROCESSORS
from mizzen.analysis.cost.reporting import cost_report

__all__ = ["PROCESSORS", "cost_report"]
