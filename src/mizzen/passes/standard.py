"""The passes that every region goes through, in their order."""

from __future__ import annotations

from mizzen.ops.limits import WindowLimits
from mizzen.passes.layout import LAYOUT
from mizzen.passes.npu_forms import (
    BEGIN_JOINS,
    FUSE_PADDING,
    SPLIT_PROJECTIONS,
    SPLIT_RESCALES,
    TURN_MAXIMA,
    WIDEN_COLUMNS,
    fold_strides,
)
from mizzen.passes.pipeline import Pipeline
from mizzen.passes.simplification import FOLD_CONSTANTS, MERGE_DUPLICATES, REMOVE_IDLE
from mizzen.passes.upscaling import unfold_upscaling

_SHORTER = (REMOVE_IDLE, FOLD_CONSTANTS, MERGE_DUPLICATES, LAYOUT, FUSE_PADDING)


def standard(limits: WindowLimits) -> Pipeline:
    """Return the passes that every region goes through, for a machine's windows.

    Duplicates are merged before orders are chosen, so that a tensor is moved once for all its
    users; and padding is fused later, where no TRANSPOSE stands between it and its reader. Orders
    are chosen again for the RESHAPEs that came since. What turns tensors for an NPU's sake comes
    last: it would be turned back.
    """
    again = (SPLIT_PROJECTIONS, WIDEN_COLUMNS, LAYOUT, REMOVE_IDLE)
    last = (
        fold_strides(limits),
        unfold_upscaling(limits),
        BEGIN_JOINS,
        TURN_MAXIMA,
        SPLIT_RESCALES,
    )
    return Pipeline((*_SHORTER, *again, *last))


def plain() -> Pipeline:
    """Return the passes that make a network shorter, whatever computes it afterwards."""
    return Pipeline((*_SHORTER, LAYOUT, REMOVE_IDLE))
