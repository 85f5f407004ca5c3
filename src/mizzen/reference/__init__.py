"""What operations compute, in NumPy: the meaning that passes keep and NPUs are compared with.

A kernel a class of operations, in files named as those of `mizzen.ops`. It is written from TOSA's
pseudocode and for exactness, and only then for speed: integers are exact, real numbers rounded once
from float64, and where TOSA leaves the result open there is an error with the operation's place,
never a number. Constant folding uses the same kernels, so a folded constant cannot differ from
what would have been computed.

It must not know targets, simulators or how anything is lowered: it has to be able to disagree.
"""

from mizzen.reference.batched import evaluate_batch
from mizzen.reference.control_flow import CustomKernel
from mizzen.reference.evaluation import Trace, apply, evaluate

__all__ = ["CustomKernel", "Trace", "apply", "evaluate", "evaluate_batch"]
