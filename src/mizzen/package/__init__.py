"""Files that Mizzen writes: one package for each format.

`tflite` builds networks, cuts parts out and puts custom operators in the place of parts, which is
how compiled regions come into a `.tflite`; `tosa` writes a graph as the file that other compilers
and Arm's reference model take.

Readers are front-ends (`mizzen.frontends`); writers are here because they need no front-end: a
network is a record of its file's schema, or a graph. They know no NPU: what stands in a custom
operator is bytes to them.
"""
