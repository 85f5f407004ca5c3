"""Unquantised PyTorch programs as TOSA operations on floating-point numbers."""

from mizzen.frontends.torch.fp_lowering import fp_activation as activation
from mizzen.frontends.torch.fp_lowering import fp_convolution as convolution
from mizzen.frontends.torch.fp_lowering import fp_elementwise as elementwise
from mizzen.frontends.torch.fp_lowering import fp_gather as gather
from mizzen.frontends.torch.fp_lowering import fp_image as image
from mizzen.frontends.torch.fp_lowering import fp_layout as layout
from mizzen.frontends.torch.fp_lowering import fp_matmul as matmul
from mizzen.frontends.torch.fp_lowering import fp_normalization as normalization
from mizzen.frontends.torch.fp_lowering import fp_pooling as pooling
from mizzen.frontends.torch.fp_lowering import fp_recurrent as recurrent
from mizzen.frontends.torch.fp_lowering import fp_reduction as reduction
from mizzen.frontends.torch.fp_lowering.fp_lower import lower_float
from mizzen.frontends.torch.fp_lowering.fp_reading import read_float

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
