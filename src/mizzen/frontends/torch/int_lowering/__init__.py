"""Quantised PyTorch programs as TOSA operations on integers.

A real tensor stands for integers that the model's own roundings give (`int_context`); an operator
is computed on them, and rounded once where the model rounds. What cannot be expressed so exactly is
an operation that PyTorch computes, with the reason: the graph is whole whatever the program is. The
arithmetic is here; what only moves numbers is beside this folder, for both profiles. It must not
know a target, whose limits it is given.
"""
