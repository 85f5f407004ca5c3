"""Makes artifacts: from a file or program and compile options to programs for an NPU.

`compile` and `check` are the public verbs. A `FrontEnd` knows the form of a file, `backend` which
one the accelerator has, and that resolves the options to a configuration; the rest is the
backend's: what compiles for an NPU asks its `Backend`, never which NPU it is. Each job is
written once, for all families: `placement` finds the regions that a backend's `RegionCompiler`
takes, and there is a placement whatever it refuses; `refusals` searches for what stops a compiler
that does not say; `tflite` compiles TFLite networks by regions; `report` puts the report together.

A family's backend is a folder of its own (`ethos_u`, `ethos_n`), which joins its target with the
front-ends; what is common to all lies beside them and must not know any of them. `torch` compiles
PyTorch programs for whichever backend there is.
"""
