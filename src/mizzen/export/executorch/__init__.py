"""Projects for a checkout of ExecuTorch.

`project` writes the program, the list of kernels that it uses, the delegate's sources and the
sizes of the memories, for the build system of ExecuTorch.

It must not know compilers, nor the other runtimes.
"""
