"""Where blocks that live for a while lie in one memory, so that its peak is as low as can be.

A block is a rectangle of bytes and steps of time. Simple orders are tried first, because nearly
every network reaches the bound by one of them in a millisecond; only what they leave open is
searched for exactly. What comes back says how low any placement could be, so that no search looks
further for what is not there. A memory of its own is a call of its own.

The search goes through canonical placements in the order of offsets, after Moffitt, MiniMalloc: A
Lightweight Memory Allocator for Hardware-Accelerated Machine Learning, ASPLOS 2023. No package
that does it is on PyPI for the platforms that Mizzen runs on, and a general solver takes longer to
import than this to finish.

It must not know tensors, operations, nor what the memory is.
"""

from mizzen.targets.ethos_u.generator.placement.blocks import (
    Block,
    Partner,
    Placed,
    in_lines,
    saved_bytes,
)
from mizzen.targets.ethos_u.generator.placement.place import place

__all__ = ["Block", "Partner", "Placed", "in_lines", "place", "saved_bytes"]
