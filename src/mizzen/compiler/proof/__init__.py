"""Prove what a code generator made: execute it at once, and compare it with the reference.

A compiler for NPUs is large and has defects; a table of those that are known is never whole. So
each compilation is validated on its own (translation validation): the simulator executes the
command stream on a few inputs that are chosen to tell, and the integer reference, which shares
nothing with the code generator, says what must come. A difference is traced to operators, which
go to the CPU with the numbers as their reason, and what is left is compiled and proved again.

What the NPU writes between operators is compared as well, not the outputs alone: an error that
rounding hides at the end of a deep network shows where it happens.

Nothing here knows a family: it knows arrays, regions of tensor graphs, and what a reference says.
Ref: Pnueli et al., Translation Validation, TACAS 1998.
"""
