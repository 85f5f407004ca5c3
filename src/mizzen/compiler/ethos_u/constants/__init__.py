"""Hold the constants of a stream to the network's: weights, biases, scales, tables.

What a generator says of its stream (`targets.ethos_u.judge.witness`) is taken as it is: that the
stream does it is for others. It must not know the generator.
"""

from mizzen.compiler.ethos_u.constants.judging import Judged, judged
from mizzen.compiler.ethos_u.constants.tables import Exponentials

__all__ = ["Exponentials", "Judged", "judged"]
