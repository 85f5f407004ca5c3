"""How TFLite's operators become TOSA operations: one file for each kind of operator.

A lowering function takes an operator in its context and adds operations, registered under the
operator's name in the file's schema; importing this package registers all of them. It must give the
integers that TensorFlow Lite Micro's kernel gives, for all inputs, so its file cites the kernel.
Where TOSA rounds otherwise, it refuses with the reason, and the CPU keeps the operator.

A function sees one operator and its tensors. It must not know its neighbours, nor any NPU: what
could be better done together is left to the passes.
"""

from mizzen.frontends.tflite.lowering import lower_activation as activation
from mizzen.frontends.tflite.lowering import lower_arrangement as arrangement
from mizzen.frontends.tflite.lowering import lower_casts as casts
from mizzen.frontends.tflite.lowering import lower_convolution as convolution
from mizzen.frontends.tflite.lowering import lower_curves as curves
from mizzen.frontends.tflite.lowering import lower_elementwise as elementwise
from mizzen.frontends.tflite.lowering import lower_functions as functions
from mizzen.frontends.tflite.lowering import lower_gather as gather
from mizzen.frontends.tflite.lowering import lower_logic as logic
from mizzen.frontends.tflite.lowering import lower_lstm as lstm
from mizzen.frontends.tflite.lowering import lower_matmul as matmul
from mizzen.frontends.tflite.lowering import lower_pooling as pooling
from mizzen.frontends.tflite.lowering import lower_quotient as quotient
from mizzen.frontends.tflite.lowering import lower_reduction as reduction
from mizzen.frontends.tflite.lowering import lower_resize as resize
from mizzen.frontends.tflite.lowering import lower_shape as shape
from mizzen.frontends.tflite.lowering import lower_slicing as slicing
from mizzen.frontends.tflite.lowering import lower_softmax as softmax
from mizzen.frontends.tflite.lowering import requantization

__all__ = [
    "activation",
    "arrangement",
    "casts",
    "convolution",
    "curves",
    "elementwise",
    "functions",
    "gather",
    "logic",
    "lstm",
    "matmul",
    "pooling",
    "quotient",
    "reduction",
    "requantization",
    "resize",
    "shape",
    "slicing",
    "softmax",
]
