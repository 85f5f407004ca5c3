"""Whether what one has is good: a network for an NPU and a board, an artifact of any compiler.

`networks` compiles a network and says what would be on the CPU and why; `budget` whether it fits
the SRAM that it may use, and what would help, which is measured; `artifacts` reads what any
compiler made, without its network.

It asks compiler, artifact and the other analyses, and must not know the command line.
"""
