"""Exported PyTorch programs, read and lowered to graphs of TOSA operations.

One registry, `operators`, says what each operator of ATen is: its other names, what quantisation
makes of it, what lowers it, or why nothing does. A quantised program becomes integers
(`int_lowering`), another one floating-point numbers (`fp_lowering`). Those two are apart because
they round differently; what only moves numbers, or says which are meant (windows, resizing), is
read from a `Call` of either once, beside them. What is added to the graph for it is
`mizzen.frontends.arrangement`, and the integers' arithmetic is `mizzen.frontends.quantized`.

A program is taken as it was exported: its nodes' own types and shapes are the truth. Nothing here
knows a target, whose limits are given as data, nor who quantised the program.
"""
