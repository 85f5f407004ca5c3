"""Rewritings of the graph of a region before code is generated; none knows an NPU.

Every pass keeps what the graph computes, to the last bit of its integers.
"""

from mizzen.passes.constants import FOLD_CONSTANTS
from mizzen.passes.pipeline import Pass, Pipeline
from mizzen.passes.simplify import REMOVE_IDLE
from mizzen.passes.standard import plain, standard

__all__ = ["FOLD_CONSTANTS", "REMOVE_IDLE", "Pass", "Pipeline", "plain", "standard"]
