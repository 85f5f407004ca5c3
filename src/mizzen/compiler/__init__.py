"""Makes artifacts: from a file or program and compile options to programs for an NPU.

`compile` and `check` are the public verbs. They find the backend of the accelerator in `registry`,
which resolves the options to a configuration, and leave the rest to it: whoever compiles for an NPU
asks its `Backend`, never which NPU it is. Backends whose compiler takes parts of a tensor graph are
a `codegen.RegionCompiler`; `placement` then finds the regions that it takes, and there is a
placement whatever it refuses.

A family's backend is a folder of its own (`ethos_u`, `ethos_n`), which joins its target with the
front-ends; what is common to all lies beside them and must not know any of them. `torch` compiles
PyTorch programs for whichever backend there is.
"""
