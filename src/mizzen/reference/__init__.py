"""What operations compute, in NumPy: the meaning that passes keep and NPUs are compared with."""

from mizzen.reference.control_flow import CustomKernel
from mizzen.reference.evaluation import Trace, apply, evaluate

__all__ = ["CustomKernel", "Trace", "apply", "evaluate"]
