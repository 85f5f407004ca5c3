"""What operations compute, in NumPy: the meaning that passes keep and NPUs are compared with."""

from mizzen.reference.custom import Custom
from mizzen.reference.evaluation import Trace, apply, evaluate

__all__ = ["Custom", "Trace", "apply", "evaluate"]
