"""Vela's compiled core, called in a process of its own, and its defects, worked round.

`generate` hands a network to `ethosu.regor` and returns what it compiled, or why it stopped; the
core may crash, loop or take all memory, and the caller gets an answer all the same (`process` is
the worker). `compiled` reads what it says about each operator.

The core computes some networks wrongly. Which ones was found by running what it compiled; `defects`
and its neighbours change a graph to one of the same meaning that it compiles rightly. They are
apart from the rules in `legal`: rules say what the NPU cannot do, these say what this version of
this compiler cannot. Nothing here places operators, searches for what stops the core, or knows the
user's file format. `raw` reads the archive that Vela writes, and imports nothing of the rest: who
has such a file needs no compiler.
"""
