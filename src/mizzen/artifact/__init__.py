"""Runs compiled networks: reads artifacts, and executes their steps for a batch.

An artifact is a list of steps between tensors: programs on the simulated NPU, and what the CPU
computes between them. `loading` makes one of a file, `execution` runs it, with the state that goes
on between inferences. All that differs between NPU families is behind `program.NpuFamily`, whose
rows are in `mizzen.targets.families`; `ethos_u` and `ethos_n` are theirs.

Running is apart from making (`mizzen.compiler`), because it must be able to disagree with it: what
an artifact computes follows from its bytes alone, never from what a compiler meant. So nothing here
imports a compiler, and running one waits for no import of one.
"""
