"""Graphs written as TOSA 1.0 files.

Arm's compiler and its reference model take a graph in this form, and `mizzen lower`
gives it to users. TOSA has no scales: quantisation and groups are left out, so a file that is read
again by `mizzen.frontends.tosa` is the same computation, not the same graph.

It writes what it is given. Which operations an NPU takes, or in which order of axes, it must not
know.
"""

from mizzen.package.tosa.writing import write

__all__ = ["write"]
