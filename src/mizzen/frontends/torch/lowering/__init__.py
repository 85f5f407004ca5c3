"""How PyTorch's operators become TOSA operations; importing this registers all of them."""

from mizzen.frontends.torch.lowering import (
    activation,
    comparison,
    convolution,
    elementwise,
    gather,
    layout,
    matmul,
    pooling,
    recurrent,
    reduction,
    resize,
    shuffle,
)

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
