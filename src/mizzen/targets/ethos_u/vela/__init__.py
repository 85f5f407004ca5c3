"""Vela's compiled core, called in a process of its own: a judge beside our own code.

`generate` hands a network to `ethosu.regor` and returns what it compiled, or why it stopped; the
core may crash, loop or take all memory, and the caller gets an answer all the same (`process` is
the worker). The core is of the package `ethos-u-vela`, which `pip install '.[vela]'` brings.

Nothing here changes a network, places operators, or knows the user's file format. `raw` reads the
archive that Vela writes, and imports nothing of the rest: who has such a file needs no compiler.
"""
