"""How large an arena TensorFlow Lite Micro needs for a network, on a 32-bit processor.

`arena` does what its interpreter does, allocation after allocation, with the sizes that structures
have there (`structures`), with what each kernel asks for (`kernels`), and with the interpreter's
own plan of tensors (`lifetimes`, `planning`). A kernel without a row is measured on this machine,
which gives a bound from above (`measured`).

It holds for the kernels that `mizzen export --to tflm` builds; those of CMSIS-NN ask for more.
"""

from mizzen.export.tflm.arena.arena import Kept, Planned, TflmArena, arena_of, variables_of

__all__ = ["Kept", "Planned", "TflmArena", "arena_of", "variables_of"]
