"""A command stream, cut into parts that an NPU executes one after the other, each by its own start.

Between two starts the performance counters can be read, so that each layer has cycles of its own.
`places` says after which operations a stream may be cut, and which layers then share a part.
`state` says what a part must be told again: the registers in force, and the lookup tables that the
NPU loses between two starts. `parts` makes the programs.

A part executes the commands of the whole stream, in its order, at its addresses. What is in memory
stays there, so that nothing else need be done again. It must not know how a stream was made.
"""

from mizzen.targets.ethos_u.cutting.parts import Part, parts_of

__all__ = ["Part", "parts_of"]
