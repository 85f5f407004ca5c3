"""What leaves Mizzen as a file, one folder for each form and runtime.

`tflite` and `tosa` write networks, and cut and join a user's own. `c` lays out a network for
Mizzen's runtime in C and chooses its kernels; `executorch` writes `.pte` programs, and reads them;
`tflm` lists operators for a resolver; `firmware` has the sources that are compiled with all of
these, `device` the memory of a program on a device.

Writers take plain data (a graph, or a file's own records) and return bytes; tests read those with
readers that others wrote. Records that Mizzen does not understand are kept as they came, so that
cutting a network in parts loses nothing.

It must not know targets, nor who asks: compilers decide what goes into a file.
"""
