"""Sequences that compute the same with less alive at once.

Branches are done in the order that keeps least, and runs of operations a few rows at a time, so
that maps between them never exist as a whole.

The rows of the last output are divided into stripes; for each, every operation of the run does
just the rows that are needed and were not done before. What lies between operations is kept in
tensors of as many rows as are alive at once, which wrap round. Nothing is computed twice, and
padding stays at the borders of maps, so that the numbers are those of the whole operations. A
chain of U85 is one operation of a run, and is done in stripes as others are.

`order` is the order, `stripes` says which rows, `rewrite` makes the sequence, `search` chooses
runs where memory is short. It must not know blocks, addresses, and cycles; what a stripe costs is
judged by the scheduler.
"""

from mizzen.targets.ethos_u.generator.cascade.order import reordered
from mizzen.targets.ethos_u.generator.cascade.rewrite import cascaded
from mizzen.targets.ethos_u.generator.cascade.search import Cascade, cascades, peak_bytes, within
from mizzen.targets.ethos_u.generator.cascade.stripes import Run

__all__ = ["Cascade", "Run", "cascaded", "cascades", "peak_bytes", "reordered", "within"]
