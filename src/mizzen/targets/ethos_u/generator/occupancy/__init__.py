"""Over which inputs the output of an operation may lie.

An output may lie over an input that nothing reads afterwards, as far as the writing of its blocks
falls behind the reading of the input's: the NPU does the blocks of an output row after row, so
nothing is overwritten that is still read. That saves nearly the smaller of the two maps and costs
no cycle.

Blocks must be chosen before, and operations whose channels are done in parts read their input more
than once, so that nothing can lie over it. A chain of U85 reads each block with all its links
before the last of them writes it, so that an output may lie over any link's input.

It must not know costs, nor how blocks were chosen.
"""

from mizzen.targets.ethos_u.generator.occupancy.overlaps import Overlap, overlap

__all__ = ["Overlap", "overlap"]
