"""The passes that every region goes through, in their order."""

from __future__ import annotations

from mizzen.passes.constants import FoldConstants
from mizzen.passes.duplicates import MergeDuplicates
from mizzen.passes.joins import BeginJoins
from mizzen.passes.layout import Layout
from mizzen.passes.padding import FusePadding
from mizzen.passes.pipeline import Pass, Pipeline
from mizzen.passes.projections import SplitProjections
from mizzen.passes.reductions import TurnMaxima
from mizzen.passes.rescales import SplitRescales
from mizzen.passes.simplify import RemoveIdle
from mizzen.passes.strides import FoldStrides
from mizzen.passes.widening import WidenColumns

PASSES: dict[str, Pass] = {
    each.name: each
    for each in (
        RemoveIdle(),
        FoldConstants(),
        MergeDuplicates(),
        Layout(),
        FusePadding(),
        BeginJoins(),
        SplitProjections(),
        WidenColumns(),
        FoldStrides(),
        TurnMaxima(),
        SplitRescales(),
    )
}
"""Every pass by its name."""


def standard() -> Pipeline:
    """Return the passes that every region goes through.

    Duplicates are merged before orders are chosen, so that a tensor is moved once for all its
    users; and padding is fused behind, where no TRANSPOSE stands between it and its reader. Orders
    are chosen again for the RESHAPEs that came since. What turns tensors for an NPU's sake comes
    last: it would be turned back.
    """
    names = (
        "remove-idle", "fold-constants", "merge-duplicates", "layout", "fuse-padding",
        "split-projections", "widen-columns", "layout", "remove-idle", "fold-strides",
        "begin-joins", "turn-maxima", "split-rescales",
    )  # fmt: skip
    return Pipeline(tuple(PASSES[name] for name in names))


def plain() -> Pipeline:
    """Return the passes that make a network shorter, whoever computes it afterwards."""
    names = (
        "remove-idle", "fold-constants", "merge-duplicates", "layout", "fuse-padding", "layout",
        "remove-idle",
    )  # fmt: skip
    return Pipeline(tuple(PASSES[name] for name in names))
