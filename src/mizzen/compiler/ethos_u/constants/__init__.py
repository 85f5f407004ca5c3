"""Hold the constants of a stream to the network's: weights, biases, scales, tables.

Rounding may hide a wrong constant from every input that is tried, so constants are compared by
themselves: the numbers that a generator says it has put into its stream
(`targets.ethos_u.judge.witness`) with those of the graph. That the stream has them is for others.
It must not know the generator.
"""

from mizzen.compiler.ethos_u.constants.judging import Judged, judged
from mizzen.compiler.ethos_u.constants.tables import Exponentials

__all__ = ["Exponentials", "Judged", "judged"]
