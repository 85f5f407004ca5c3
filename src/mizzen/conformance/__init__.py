"""Networks of one operator through a compiler, executed, and compared with the kernels."""
