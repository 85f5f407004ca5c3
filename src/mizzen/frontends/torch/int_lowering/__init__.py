"""How PyTorch's operators become TOSA operations; importing this registers all of them."""

from mizzen.frontends.torch.int_lowering import int_activation as activation
from mizzen.frontends.torch.int_lowering import int_comparison as comparison
from mizzen.frontends.torch.int_lowering import int_convolution as convolution
from mizzen.frontends.torch.int_lowering import int_elementwise as elementwise
from mizzen.frontends.torch.int_lowering import int_gather as gather
from mizzen.frontends.torch.int_lowering import int_layout as layout
from mizzen.frontends.torch.int_lowering import int_matmul as matmul
from mizzen.frontends.torch.int_lowering import int_pooling as pooling
from mizzen.frontends.torch.int_lowering import int_recurrent as recurrent
from mizzen.frontends.torch.int_lowering import int_reduction as reduction
from mizzen.frontends.torch.int_lowering import int_resize as resize
from mizzen.frontends.torch.int_lowering import int_shuffle as shuffle

__all__ = [
    "activation",
    "comparison",
    "convolution",
    "elementwise",
    "gather",
    "layout",
    "matmul",
    "pooling",
    "recurrent",
    "reduction",
    "resize",
    "shuffle",
]
