"""Decide what runs where: groups of operations become regions of the NPU and of the CPU.

A group, the operations of one computation of the user's model, is never torn apart, so that every
answer can be given in the user's terms. Stages, counted along the edges, make regions that cannot
wait for each other in a circle; a region that costs more in transfers than it saves goes back to
the CPU. What is legal is asked of a function: the same placement serves all NPUs, and a refusal by
a code generator is one more reason, with which it is tried again.

It must not know targets, code generators, or what the CPU's part is computed with.
"""

from mizzen.diagnostics import Device
from mizzen.partition.extraction import Extracted, extract, extract_operations, in_order
from mizzen.partition.placement import Partition, Placed, Region, partition

__all__ = [
    "Device",
    "Extracted",
    "Partition",
    "Placed",
    "Region",
    "extract",
    "extract_operations",
    "in_order",
    "partition",
]
