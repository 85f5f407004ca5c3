"""How TFLite's operators become TOSA operations; importing this registers all of them."""

from mizzen.frontends.tflite.lowering import (
    activation,
    arrangement,
    convolution,
    elementwise,
    gather,
    pooling,
    reduction,
    requantization,
    resize,
    shape,
    slicing,
)

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
