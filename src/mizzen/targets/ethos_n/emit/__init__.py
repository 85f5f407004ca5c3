"""From passes to commands, encoded weights, buffers and the container.

Nothing is decided here any more but numbers: ids and places of buffers in DRAM, multipliers,
shifts, bounds. A pass is written alone, from its nodes and its plan, so that a command can be
checked by hand; the order of ids is the library's, since containers are compared byte for byte. It
must not change the work graph or a plan: what does not fit here (E973) is refused, never repaired.

An example, the second pass of that of `schedule`::

    input    1x32x32x128, SRAM at 57,344; of the convolution before its interleaving 1x64x64x32
    weights  3x3x32x64 in stripes of 3x3x128x64: the shape is the network's, the stripe the pass's
    mce      stride 2, padding 1; results 110 to 255, zero point 110
    output   1x16x16x64 NHWC in DRAM

An input of scale 0.02, weights of 0.5 and an output of 0.7 make the factor 0.02 * 0.5 / 0.7 = 1/70
of all accumulators. It is not a field of the command: it stands in the weight stream, as the
multiplier 59,919 and the shift 22, the nearest of 16 bits (59,919 / 2**22 = 0.0142858). ReLU's
bounds are the command's: its 0 is the output's zero point. Buffers are numbered as they come up: 0
is the stream, 1 the input, 2 and 3 the weights and their places of the first pass, 4 and 5 of the
second, 6 the output. The map between the passes is in SRAM and has no buffer, but a number from
0x8000000 on.
"""

from mizzen.targets.ethos_n.emit.emission import Emission, emit

__all__ = ["Emission", "emit"]
