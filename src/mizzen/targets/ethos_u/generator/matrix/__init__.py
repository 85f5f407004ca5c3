"""Products of two maps on U55 and U65, as convolutions whose weights the program writes itself.

U85 has a product of maps. These machines multiply maps element by element only: a product of
matrices takes a multiplication and a sum for each column of the result. A convolution does it in
the MAC array, if one operand becomes a weight stream: the machine reads streams from memory when an
operation starts, and the format has slices in which a weight is one byte. `columns` finds products
that are made column by column, `streams` makes the stream that is written, and the operations that
write it.

Weights in a byte are -127 .. 128, so zero points go into a second element of the kernel, constant,
under which the input lies once more: two rows of the map are one row of memory.

It must not know blocks but their depth, nor addresses, nor costs.
"""

from mizzen.targets.ethos_u.generator.matrix.columns import with_written_products

__all__ = ["with_written_products"]
