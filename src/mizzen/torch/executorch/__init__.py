"""Ethos-U as a backend of ExecuTorch's own lowering.

ExecuTorch asks a partitioner which nodes of a program a backend takes, and hands each part to the
backend, which gives the payload of a delegate. Placing, compiling and proving are the same as for
artifacts; here is only what speaks ExecuTorch's language, and alone imports it.
"""
