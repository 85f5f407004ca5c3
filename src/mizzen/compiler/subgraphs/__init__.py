"""Networks of several subgraphs: each is compiled, proved and timed as a network of its own.

What compiles a network looks at its main subgraph alone, so each subgraph that signatures, IF and
WHILE execute is made the main one of a network (`joining`). The compiled ones are joined into one
file, and so are their reports (`reports`). No family of NPUs knows of it.
"""

from mizzen.compiler.subgraphs.compiling import compile_subgraphs, has_several, with_signatures

__all__ = ["compile_subgraphs", "has_several", "with_signatures"]
