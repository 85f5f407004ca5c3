"""Take away channels that tell nothing: those that are constant, or that nothing weighs.

Training drives weights of whole channels to zero, and quantisation rounds the rest away, so that a
channel is the same number whatever the network sees. What it adds to the sums after it is then a
constant, which goes into their biases. Maps become narrower, weights fewer.

Conditions: a channel leaves together with what depthwise convolutions, pools and views make of it,
whatever that is, once all convolutions and FULLY_CONNECTED after them either have zero weights for
it, or it is constant there (`ranges`), and the zero point where they pad. A network's inputs and
outputs keep all. Sums have the same value: exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.groups import Group, bias_of, groups_of
from mizzen.compiler.rewrites.ranges import Range, ranges_of, rows_of
from mizzen.compiler.rewrites.windows import CONVOLUTION
from mizzen.flatbuffer.tflite import Padding

Mask = npt.NDArray[np.bool_]
"""One for each channel."""

LARGEST_BIAS = 1 << 30
"""Biases are kept away from the end of 32 bits."""


def prune(draft: Draft) -> bool:
    """Take away such channels; False without one."""
    known = ranges_of(draft)
    droppable = [(group, dropped) for group in groups_of(draft)
             if (dropped := _dropped(group, known)).any()]  # fmt: skip
    for group, dropped in droppable:
        for user in group.users:
            _keep_sums(draft, user, dropped, known.get(user.data))
        group.take(draft, np.flatnonzero(~dropped))
    return bool(droppable)


def _dropped(group: Group, known: dict[Wire, Range]) -> Mask:
    """Return which channels of a group can leave; one always stays."""
    masks = [_droppable(step, known.get(step.data)) for step in group.users]
    mask: Mask = np.all(masks, axis=0)
    if mask.all():
        mask[0] = False
    return mask


def _droppable(step: Step, known: Range | None) -> Mask:
    """Return which input channels an operator with weights can do without."""
    matrix = rows_of(step)
    assert matrix is not None, "it is in a group"
    unused: Mask = ~np.any(matrix, axis=(0, 1))
    if known is None:
        return unused
    zero = int(step.data.zero_points[0])
    constant: Mask = known.low == known.high
    if step.kind == CONVOLUTION and not _is_inside(step):
        constant = constant & (known.low == zero)
    added = bias_of(step).astype(np.int64) + _constants(matrix, constant, known, zero)
    fits = int(np.abs(added).max(initial=0)) < LARGEST_BIAS
    return np.logical_or(unused, constant) if fits else unused


def _is_inside(step: Step) -> bool:
    """Whether a convolution's windows never reach over its input."""
    weights = step.inputs[1]
    assert weights is not None, "it is in a group"
    alone = weights.shape[1:3] == (1, 1)
    return alone or int(step.fields["padding"]) == Padding.VALID


def _constants(matrix: Array, dropped: Mask, known: Range, zero: int) -> Array:
    """Return the amounts that constant channels add to each sum, [O]."""
    values = (known.low - zero)[dropped]
    return matrix[:, :, dropped].astype(np.int64).sum(1) @ values.astype(np.int64)


def _keep_sums(draft: Draft, step: Step, dropped: Mask, known: Range | None) -> None:
    """Put what constant channels that leave add to the sums into the bias."""
    matrix, bias = rows_of(step), step.inputs[2]
    assert matrix is not None, "it is in a group"
    assert bias is not None, "it is in a group"
    if known is not None:
        constant: Mask = known.low == known.high
        zero = int(step.data.zero_points[0])
        added = bias_of(step) + _constants(matrix, dropped & constant, known, zero)
        step.inputs[2] = draft.constant(bias, added.astype(np.int32))
