"""Rewritings of the graph of a region before code is generated; none knows an NPU.

Every pass keeps what the graph computes, to the last bit of its integers.
"""

from mizzen.passes.pipeline import Pass, Pipeline, parse
from mizzen.passes.standard import PASSES, plain, standard

__all__ = ["PASSES", "Pass", "Pipeline", "parse", "plain", "standard"]
