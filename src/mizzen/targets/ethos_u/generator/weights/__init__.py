"""Constants of convolutions as the NPU reads them: scale records and compressed weights.

A blob is bound to the block depth, the traversal and the channels that it was made for: the machine
walks weights in the order of its blocks, and a stream made for another block decodes to the wrong
places. `blob` puts the parts of a blob together, `records` the scales; `order` and
`order_u85` say where each weight of a stream belongs.

The format leaves much to what writes it. `coding` says what there is to choose: slices, how weights
are numbered in each, in which codes numbers are written. `mappings` and `slices` choose by price,
`bitstream` writes, `compression` says how hard is tried. `written` makes streams with gaps, for
products of two maps.

U85 decodes up to four streams at once, leaves out two of each four weights where they are zeros,
and takes another format, which `fast` writes: larger, and decoded faster. Other streams are coded
as on U55 and U65, in an order of their own.

It must not know schedules, addresses, nor what judges streams: simulator and checker hold the same
order a second time, written apart.
"""

from mizzen.targets.ethos_u.generator.weights.blob import encode, fast_bits
from mizzen.targets.ethos_u.generator.weights.compression import Compression
from mizzen.targets.ethos_u.generator.weights.order import (
    StreamOrder,
    microblock_depth,
    orders_of,
)
from mizzen.targets.ethos_u.generator.weights.order_u85 import StreamOrderU85, orders_u85
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
    "StreamOrderU85",
    "byte_of",
    "encode",
    "fast_bits",
    "gapped_stream",
    "microblock_depth",
    "orders_of",
    "orders_u85",
]
