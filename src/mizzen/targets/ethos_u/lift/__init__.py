"""Operations out of a command stream, so that they can be scheduled anew.

A stream of Ethos-U55 or U65, Vela's or anybody's, says what is computed and how in one breath. Here
the how is taken off: weights are decoded, transfers into buffers are followed back to constants,
pieces of an operation put together, and addresses that hold one value after the other become
tensors. What comes out computes what the stream does, bit for bit, or the program is refused with
the command and the reason, and whoever asked keeps the words as they are.

`registers` says what a command does, `stream` walks over commands and `values` keeps who wrote
which byte (of `footprints`); `slices`, `rolling` and `stripes` put operations together that were
cut in channels or rows; `frames` finds the map that views have in common, `carrying` what brings
bytes to a tensor of their own, and `tensors` makes the sequence. It must not know how operations
are scheduled, nor what judges streams: of that room it takes `codec` alone.
"""

from mizzen.targets.ethos_u.lift.lifting import lift
from mizzen.targets.ethos_u.lift.values import Held

__all__ = ["Held", "lift"]
