"""Arm's compiler Vela as a maker: for Ethos-U85, and beside our own code for U55 and U65.

Vela's file is taken as it is, once it is proved (`proof`): what differs from the reference, what
stops the compiler and what it is known to get wrong is hidden from it, and goes to the CPU
(`tflite`, `cpu_fallback`, `masking`, `misread`, `misplaced`). TOSA networks and regions of PyTorch
programs go whole (`tosa`, `regions`); operators that stop the core are found by halving
(`tosa_refusals`).

Nothing outside starts Vela, and nothing here is needed where it is not asked for: with rules for
U85 the folder goes.
"""
