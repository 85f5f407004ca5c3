"""From a network to the work graph that passes are formed from.

The library's operations say what is meant, passes what is done; between them lies the work graph,
whose nodes are the least pieces that a pass can take or leave. Rewrites then remove what two
operations need and their sequence does not. Here is decided *what* is computed; how it is cut and
where it lies must not be known here: a rule may look at shapes, layouts and quantisations, never at
the size of the SRAM.

An example, for 16 banks of SRAM (`ethos-n78-4tops-4ple`): a 3x3 convolution of stride 2 from
64x64x32 to 32x32x64, ReLU, a 2x2 maximum. `lower` makes of it::

    Source      1x64x64x32   NHWC    what the inference gives
    Relayout    1x64x64x32   NHWCB   the engines read bricks
    FusedPle    1x32x32x128  NHWCB   INTERLEAVE_2X2_2_2: every second row and column to a submap
    Mce         1x32x32x64   NHWCB   the convolution, by stride 1 over the four submaps
    Clamp       1x32x32x64   NHWCB   110 to 255, in quantised numbers
    FusedPle    1x16x16x64   NHWCB   MAXPOOL_2X2_2_2
    Relayout    1x16x16x64   NHWC
    Sink        1x16x16x64   NHWC

The compute engines have no stride, so the convolution needs a stage before it: channel c is in bank
c modulo 16, each submap begins in bank 0, and 32 channels are a whole number of banks, so there are
4 * 32 = 128 channels without a gap. The ReLU stays a node of its own: a clamp is free after an
accumulator, and only `schedule` knows whether it has one.
"""

from mizzen.targets.ethos_n.lower.lowering import lower

__all__ = ["lower"]
