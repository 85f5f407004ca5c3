"""Rewritings of the graph of a region before code is generated; none knows an NPU.

Every pass keeps what the graph computes, to the last bit of its integers, and outputs keep their
names. A pass is a value, a name and a function; most are rules of `mizzen.patterns`. `standard` is
the one order in which they run: it says why each stands where it does. Which forms NPUs like in
general (rows instead of columns, padding inside the kernel) is known; a machine's limits are
given by the target as data (`mizzen.ops.limits`).

It must not know targets, front-ends, nor placement: passes see one graph, and any part of it.
"""

from mizzen.passes.pipeline import Pass, Pipeline
from mizzen.passes.simplification import FOLD_CONSTANTS, REMOVE_IDLE
from mizzen.passes.standard import plain, standard

__all__ = ["FOLD_CONSTANTS", "REMOVE_IDLE", "Pass", "Pipeline", "plain", "standard"]
