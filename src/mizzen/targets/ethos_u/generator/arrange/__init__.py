"""Sequences that compute the same as another and may cost less: layout as part of the schedule.

The MAC array multiplies 8 or 32 channels of two or four neighbouring columns at once. What a
network calls height, width and depth need not be what the array takes for them: a map is bytes, and
registers say how they are walked. So each rewrite here changes how operations see their maps, or
which of them there are, and never a number that comes out.

    columns   few channels: the columns that a window covers become channels
    gather    short rows: what windows cover is written side by side first
    swap      height and width of some operations, and of the tensors between them
    views     a contiguous map in another shape: pools, 1x1 convolutions, elementwise operations
    copies    what only moves numbers leaves, and the tensors at its ends become one
    planes    tensors that are seen in several shapes lie in bricks of which rows follow each other
    widen     convolutions write the constant channels that a map was padded with
    transfers copies of long runs on U85, beside the array; last of all but chains
    merged    copies of single rows, many of them, become one; always pays
    chains    of U85: results that only the next operation reads, it takes block by block; last
    needed    operations whose results are never read are left out; always pays

`variants` gives all of one step; `best` takes those that pay, by costs that the caller gives. A
variant is a whole sequence, so that they compose in any order.

It must not know what anything costs, nor blocks, addresses, and command words.
"""

from mizzen.targets.ethos_u.generator.arrange.chains import chained
from mizzen.targets.ethos_u.generator.arrange.columns import Pixels, columns_as_channels
from mizzen.targets.ethos_u.generator.arrange.merged import merged
from mizzen.targets.ethos_u.generator.arrange.needed import needed
from mizzen.targets.ethos_u.generator.arrange.orientation import Estimate, Layouts
from mizzen.targets.ethos_u.generator.arrange.planes import in_planes
from mizzen.targets.ethos_u.generator.arrange.search import Arranged, ArrangeStep, Judge, best
from mizzen.targets.ethos_u.generator.arrange.swap import swap
from mizzen.targets.ethos_u.generator.arrange.transfers import transferred
from mizzen.targets.ethos_u.generator.arrange.variants import Variant, variants

__all__ = [
    "ArrangeStep",
    "Arranged",
    "Estimate",
    "Judge",
    "Layouts",
    "Pixels",
    "Variant",
    "best",
    "chained",
    "columns_as_channels",
    "in_planes",
    "merged",
    "needed",
    "swap",
    "transferred",
    "variants",
]
