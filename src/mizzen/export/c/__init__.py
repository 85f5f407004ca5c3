"""Projects of C99 that need a cross compiler alone: Mizzen's own runtime and its kernels.

`container` takes an artifact apart and lays it out as the runtime reads it; `project` adds the
sources, the board's header and its linker script, so that the project builds as it is.

It must not know compilers, nor the other runtimes.
"""
