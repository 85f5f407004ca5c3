"""Constants of convolutions as U55 and U65 read them: scale records and compressed weights.

A blob is bound to the block depth, the traversal and the channels that it was made for: the machine
walks weights in the order of its blocks, and a stream made for another block decodes to the wrong
places. `blob` puts the parts of a blob together; `order` says where each weight of a stream
belongs.

The format leaves much to what writes it. `coding` says what there is to choose: slices, how weights
are numbered in each, in which codes numbers are written. `mappings` and `slices` choose by price,
`bitstream` writes, `compression` says how hard is tried. `written` makes streams with gaps, for
products of two maps.

It must not know schedules, addresses, nor what judges streams: simulator and checker hold the same
order a second time, written apart.
"""

from mizzen.targets.ethos_u.generator.weights.blob import encode
from mizzen.targets.ethos_u.generator.weights.compression import Compression
from mizzen.targets.ethos_u.generator.weights.order import (
    StreamOrder,
    microblock_depth,
    orders_of,
    places,
)
from mizzen.targets.ethos_u.generator.weights.written import (
    LEAST_BYTE,
    MOST_BYTE,
    GappedStream,
    byte_of,
    gapped_stream,
)

__all__ = [
    "LEAST_BYTE",
    "MOST_BYTE",
    "Compression",
    "GappedStream",
    "StreamOrder",
    "byte_of",
    "encode",
    "gapped_stream",
    "microblock_depth",
    "orders_of",
    "places",
]
