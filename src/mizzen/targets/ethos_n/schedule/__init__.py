"""From the work graph to passes: fusion, strategies, stripes, places in SRAM.

A pass is one command: it loads stripes, computes, stores. A pass is made as long as can be, since
every map between two passes has to lie somewhere. Where a chain of nodes cannot be a pass, it
leaves a wish (less SRAM in use, another layout, a stage more), the graph is repaired, and all of it
is tried anew; so no rule needs to foresee another. What the commands say, and what weights weigh
once they are encoded, must not be known here: weights are taken to be incompressible.

An example, that of `lower`, on 16 banks of 65,536 bytes. Two passes come of eight nodes:

1. Relayout and interleaving; the compute engines only copy, by an identity of 1x1 that the repair
   put before the kernel. Strategy 3, everything at once, is tried first and fits. Of each bank the
   kernel takes 4,096 bytes at 0; the input 1 * 64 * 64 * 32 / 16 = 8,192 after it, at 4,096; the
   weights 128 at 12,288; the output, 1x32x32x128, 8,192 at the other end, at 57,344, so that what
   comes next can be loaded meanwhile. It is whole and in bricks: it stays in SRAM.
2. Convolution, clamp, maximum, relayout. The input is at 57,344 already and nothing is loaded but
   the weights: 3x3x128 of 9 bits and a header for each of 64 channels, 86,528 bytes, 5,408 of each
   bank, beside the input at 57,344 - 5,408 = 51,936. The output, 16,384 bytes, is NHWC, which SRAM
   does not have: it goes to DRAM by way of 1,024 bytes at 4,096.

Were strategy 3 not allowed, strategy 0 would cut the planes of both passes into two stripes of
rows; the map between them would go to DRAM, compressed, since stripes of 16x32x128 are whole cells
of 8x8x32.
"""

from mizzen.targets.ethos_n.schedule.division import schedule

__all__ = ["schedule"]
