"""Unquantised PyTorch programs as TOSA operations on floating-point numbers."""

from mizzen.frontends.torch.floating import (
    activation,
    convolution,
    elementwise,
    gather,
    image,
    layout,
    matmul,
    normalization,
    pooling,
    recurrent,
    reduction,
)
from mizzen.frontends.torch.floating.lower import lower_float
from mizzen.frontends.torch.floating.reading import read_float

__all__ = [
    "activation",
    "convolution",
    "elementwise",
    "gather",
    "image",
    "layout",
    "lower_float",
    "matmul",
    "normalization",
    "pooling",
    "read_float",
    "recurrent",
    "reduction",
]
