"""How operations of U55 and U65 divide the shared buffer, and with it which blocks there are.

From the start of the buffer there lie two banks through which results leave, then the input's
blocks, the accumulators towards the end, and lookup tables at the very end; an elementwise
operation has its second input where others have accumulators. Input and accumulators are double:
one block is worked on while the next is filled. A block is legal if all of it fits.

What searches for blocks and what writes their registers ask here. What judges streams has a
second implementation of its own, and must not import this one.

Ref: Ethos-U55 and Ethos-U65 technical reference manuals, "Shared buffer"; Vela 5.2.0,
architecture_allocator.py and architecture_features.py.
"""

from mizzen.targets.ethos_u.generator.shared_buffer.cores import (
    CORES,
    LARGEST_BLOCK,
    OUTPUT_BANKS,
    SLOT_BYTES,
    TABLE_BANKS,
    TABLE_SLOTS,
    Core,
    core_of,
)
from mizzen.targets.ethos_u.generator.shared_buffer.fit import (
    Demand,
    Parts,
    demand_of,
    fits,
    parts_of,
    subkernel_side,
)

__all__ = [
    "CORES",
    "LARGEST_BLOCK",
    "OUTPUT_BANKS",
    "SLOT_BYTES",
    "TABLE_BANKS",
    "TABLE_SLOTS",
    "Core",
    "Demand",
    "Parts",
    "core_of",
    "demand_of",
    "fits",
    "parts_of",
    "subkernel_side",
]
