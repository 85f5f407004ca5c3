"""Sequences that compute the same as another and may cost less: layout as part of the schedule.

The MAC array multiplies 8 or 32 channels of two or four neighbouring columns at once. What a
network calls height, width and depth need not be what the array takes for them: a map is bytes, and
registers say how they are walked. So each rewrite here changes how operations see their maps, or
which of them there are, and never a number that comes out.

    columns   few channels: the columns that a window covers become channels
    swap      height and width of some operations, and of the tensors between them
    views     a contiguous map in another shape: pools, 1x1 convolutions, elementwise operations

It must not know what anything costs, blocks, addresses, nor command words.
"""

from mizzen.targets.ethos_u.arrange.columns import columns_as_channels
from mizzen.targets.ethos_u.arrange.swap import swap

__all__ = ["columns_as_channels", "swap"]
