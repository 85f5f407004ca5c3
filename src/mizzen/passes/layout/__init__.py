"""The order of elements that each operation works in, chosen for a whole graph at once.

PyTorch's tensors are NCHW, TOSA's convolutions NHWC. A front-end writes a TRANSPOSE before and
after each; here orders are chosen so that few remain, and only where orders really differ: an
input or output of the graph, two operations that insist on different orders.
"""

from mizzen.passes.layout.choice import Edges
from mizzen.passes.layout.order import Movement, Order, composed, movement, permuted, row_major
from mizzen.passes.layout.rewrite import LAYOUT, layout, wanted_orders

__all__ = [
    "LAYOUT",
    "Edges",
    "Movement",
    "Order",
    "composed",
    "layout",
    "movement",
    "permuted",
    "row_major",
    "wanted_orders",
]
