"""Bring channels into the order in which their weights are coded in fewer bytes.

Weights go through flash and bus in a code whose parameters change along the stream. Where channels
with many zeros lie side by side, the code fits them better. The order of a map's channels means
nothing to the network.

Conditions: groups of channels between operators with weights (`groups`); a network's inputs and
outputs keep their order. Sums have the same terms: exact.
"""

from __future__ import annotations

import numpy as np

from mizzen.compiler.rewrites.draft import Draft
from mizzen.compiler.rewrites.groups import Group, Indices, groups_of
from mizzen.compiler.rewrites.ranges import rows_of


def sort_channels(draft: Draft) -> bool:
    """Sort the channels of every group by how many of their weights are zero; False without any."""
    groups = groups_of(draft)
    for group in groups:
        group.take(draft, _order(group))
    return bool(groups)


def _order(group: Group) -> Indices:
    matrix = rows_of(group.root)
    assert matrix is not None, "it is in a group"
    wide = np.abs(matrix.astype(np.int64)).reshape(matrix.shape[0], -1)
    zeros, sums = (wide == 0).sum(1), wide.sum(1)
    return np.lexsort((sums, -zeros))
