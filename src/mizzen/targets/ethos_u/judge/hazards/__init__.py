"""Hazards of a command stream: what its waits and block dependencies leave unordered.

Hardware overlaps operations that a simulator executes one after the other, so a stream may compute
the right numbers here and race on a device. The checker reads the stream again for what each
operation reads and writes, block by block, and finds pairs whose order nothing guarantees, and
reads of what nothing has written.

It has its own reading of the registers, apart from the simulator's and from any compiler's: it
judges what they agree on. So it must not import `sim`, nor anything that emits.
"""

from mizzen.targets.ethos_u.judge.hazards.checker import HazardReport, find_hazards
from mizzen.targets.ethos_u.judge.hazards.contents import Surroundings
from mizzen.targets.ethos_u.judge.hazards.extents import Extent, extents

__all__ = ["Extent", "HazardReport", "Surroundings", "extents", "find_hazards"]
