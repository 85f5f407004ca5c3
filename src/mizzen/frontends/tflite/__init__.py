"""TFLite networks and artifacts, read into typed data with every index checked; lowered to graphs.

Reading and lowering are apart, since most users of a file (placement, reports, running) want its
operators and tensors, not a graph; only who lowers pays for importing the lowerings. Each operator
becomes operations of one group that compute the integers of TFLite Micro's kernels bit for bit, or
a CUSTOM operation that says why it has no such form: the graph is whole whatever the network is.

It must not know targets: what a custom operator of an artifact holds is for `mizzen.artifact`.
"""

from mizzen.frontends.tflite.agreement import require_agreement
from mizzen.frontends.tflite.model import (
    Model,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
    macs,
    zero_of,
)
from mizzen.frontends.tflite.reading import read, require_quantized

__all__ = [
    "Model",
    "Operator",
    "Quantization",
    "Signature",
    "Subgraph",
    "Tensor",
    "macs",
    "read",
    "require_agreement",
    "require_quantized",
    "zero_of",
]
