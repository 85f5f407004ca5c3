"""How TFLite's operators become TOSA operations; importing this registers all of them."""

from mizzen.frontends.tflite.lowering import lower_activation as activation
from mizzen.frontends.tflite.lowering import lower_arrangement as arrangement
from mizzen.frontends.tflite.lowering import lower_convolution as convolution
from mizzen.frontends.tflite.lowering import lower_elementwise as elementwise
from mizzen.frontends.tflite.lowering import lower_gather as gather
from mizzen.frontends.tflite.lowering import lower_pooling as pooling
from mizzen.frontends.tflite.lowering import lower_reduction as reduction
from mizzen.frontends.tflite.lowering import lower_resize as resize
from mizzen.frontends.tflite.lowering import lower_shape as shape
from mizzen.frontends.tflite.lowering import lower_slicing as slicing
from mizzen.frontends.tflite.lowering import requantization

__all__ = [
    "activation",
    "arrangement",
    "convolution",
    "elementwise",
    "gather",
    "pooling",
    "reduction",
    "requantization",
    "resize",
    "shape",
    "slicing",
]
