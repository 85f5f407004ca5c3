"""Quantised PyTorch programs as TOSA operations on integers.

Functions here read a node's arguments and say what it computes; the integers of it are
`mizzen.frontends.quantized`, which knows no node. A real tensor stands for integers that the
model's own roundings give, and what cannot be expressed so exactly is an operation that PyTorch
computes, with the reason: the graph is whole whatever the program is. What only moves numbers is
beside this folder, for both profiles. It must not know a target, whose limits it is given.
"""
