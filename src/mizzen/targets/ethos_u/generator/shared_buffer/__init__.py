"""How operations divide the memory inside the NPU, and with it which blocks there are.

On U55 and U65 that is the shared buffer. From its start there lie two banks through which results
leave, then the input's blocks, the accumulators towards the end, and lookup tables at the very end;
an elementwise operation has its second input where others have accumulators. Input and accumulators
are double: one block is worked on while the next is filled. A block is legal if all of it fits.
U85 has a memory for each instead, and several microblocks, of which the kind, the types and the
shape of an operation decide.

What searches for blocks and what writes their registers ask here, of any machine by `either`. What
judges streams has a second implementation of its own, and must not import this one.

Ref: Ethos-U55 and Ethos-U65 technical reference manuals, "Shared buffer"; Vela 5.2.0,
architecture_allocator.py and architecture_features.py; of U85, its C++ core.
"""

from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import ARRAYS, Array
from mizzen.targets.ethos_u.generator.shared_buffer.cores import (
    CORES,
    LARGEST_BLOCK,
    OUTPUT_BANKS,
    SLOT_BYTES,
    TABLE_BANKS,
    TABLE_SLOTS,
    Core,
)
from mizzen.targets.ethos_u.generator.shared_buffer.demand_u85 import DemandU85, may_store_bricks
from mizzen.targets.ethos_u.generator.shared_buffer.either import (
    DEPTH_FIRST_BYTES,
    AnyDemand,
    core_of,
    demand_on,
    fitting,
    input_memory,
    job_depth_for,
    microblock_for,
    microblock_of,
    sides_of,
    slab_for,
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
    "ARRAYS",
    "CORES",
    "DEPTH_FIRST_BYTES",
    "LARGEST_BLOCK",
    "OUTPUT_BANKS",
    "SLOT_BYTES",
    "TABLE_BANKS",
    "TABLE_SLOTS",
    "AnyDemand",
    "Array",
    "Core",
    "Demand",
    "DemandU85",
    "Parts",
    "core_of",
    "demand_of",
    "demand_on",
    "fits",
    "fitting",
    "input_memory",
    "job_depth_for",
    "may_store_bricks",
    "microblock_for",
    "microblock_of",
    "parts_of",
    "sides_of",
    "slab_for",
    "subkernel_side",
]
