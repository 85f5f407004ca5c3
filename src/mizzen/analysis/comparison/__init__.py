"""Compare: what an NPU computes with what the model means, quantised with float, versions by cost.

The artifact's own command stream is executed, state and CPU operators included, and what it writes
into memory on the way is held against the same layer of a reference that shares nothing with the
compiler: TensorFlow Lite Micro's kernels, the converted PyTorch program, or TOSA's meaning. Layers
are the operators of the user's model. A layer that differs within a documented bound does not make
those after it differ: the reference goes on from the NPU's numbers.

Nothing here knows an NPU, or prints.
"""

from mizzen.analysis.comparison.exactness import Inputs, compare, compare_program
from mizzen.analysis.comparison.precision import Data, precision, precision_of_programs
from mizzen.analysis.comparison.versions import version_of, version_of_artifact

__all__ = [
    "Data",
    "Inputs",
    "compare",
    "compare_program",
    "precision",
    "precision_of_programs",
    "version_of",
    "version_of_artifact",
]
