"""Read TOSA files as graphs.

The graph's operations are TOSA's, so reading is a matter of names, types and attributes: tensors
become values, regions the bodies of control flow, variables their accesses. A file is data from
outside: everything is checked, and what is wrong is said with the operator it is in. What operands
an operation needs is checked once, by `mizzen.ops.verify`, not here.

It must not know targets, nor who compiles the graph.
"""

from mizzen.frontends.tosa.reading import read

__all__ = ["read"]
