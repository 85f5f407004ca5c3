"""Compiled networks inside other files: C sources with their bytes, and images of firmware.

People often have a network only as an array in a source, or as a part of what is flashed. `arrays`
reads arrays of bytes out of C; `elf` says which symbol has a byte of a file; `search` finds what
is a network, and where it ends.

All of it is bytes of strangers. Nothing is compiled or executed, and work is in proportion to the
file. It must not know how a network is run.
"""
