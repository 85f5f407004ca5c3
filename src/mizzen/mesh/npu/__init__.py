"""Elements that are NPUs: their tiles compiled to command streams, and executed as such.

A machine's kind of element may name an accelerator. `compile_tiles` gives the tiles on such
elements to that accelerator's compiler, one network a tile, and puts the artifacts into the
program; execution then runs the streams in the simulator instead of the layer's operations. What
the compiler does not take (partial sums, softmax) stays with the element's core. It must not know
mappers: any program will do.
"""

from mizzen.mesh.npu.compiling import compile_tiles

__all__ = ["compile_tiles"]
