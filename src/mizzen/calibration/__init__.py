"""Floating-point networks in files, quantised with the user's own data, and what that costs.

An ONNX, TFLite or PyTorch file becomes a quantised file of the same form. The quantisers are those
that users know: ONNX Runtime's, Google's AI Edge Quantizer, torchao's. What is ours is the choices,
which are pinned; what the data shows of every tensor, and warnings of what it does not show; the
error of each layer; and advice by name of what to keep in floating point, and where to cut.

Each form is a `Source` of its own module: it says what the network takes, what each tensor was in
the data, and gives the quantised file. `quantizing` takes any of them to a `Quantized`.

No NPU is known here, and no code generator: a quantised file is for `mizzen.compile` like any
other. The quantisers' packages are imported when they are needed.
"""

from mizzen.calibration.quantizing import Quantized, quantize_file
from mizzen.calibration.scheme import Activations, Method, Scheme

__all__ = ["Activations", "Method", "Quantized", "Scheme", "quantize_file"]
