"""Take away channels that tell nothing: those that are constant, or that nothing weighs.

Training drives weights of whole channels to zero, and quantisation rounds the rest away, so that a
channel is the same number whatever the network sees. What it adds to the sums behind it is then a
constant, which goes into their biases. Maps become narrower, weights fewer.

Conditions: a channel leaves together with what depthwise convolutions, pools and views make of it,
whatever that is, once all convolutions and FULLY_CONNECTED behind them either have zero weights for
it, or it is constant there (`ranges`), and the zero point where they pad. A network's inputs and
outputs keep all. Sums have the same value: exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.ranges import DENSE, POOLS, Range, ranges_of, rows_of
from mizzen.compiler.rewrites.windows import CONVOLUTION, DEPTHWISE
from mizzen.flatbuffer.tflite import Padding, TensorType

Mask = npt.NDArray[np.bool_]
"""One for each channel."""

LARGEST_BIAS = 1 << 30
"""Biases are kept away from the end of 32 bits."""


def prune(draft: Draft) -> bool:
    """Take away such channels; False where there is none."""
    known = ranges_of(draft)
    groups = [group for step in draft.steps if (group := _group_of(draft, step, known)) is not None]
    found = [group for group in groups if group.dropped.any()]
    for group in found:
        group.apply(draft)
    return bool(found)


@dataclass(slots=True, eq=False)
class _Group:
    """Maps whose channels leave together: what an operator with weights gives, and views of it.

    root     gives the first of them
    between  depthwise convolutions, pools and views
    users    operators with weights that take them, and which map
    dropped  the channels that leave
    """

    root: Step
    known: dict[Wire, Range]
    wires: list[Wire] = field(default_factory=list[Wire])
    between: list[Step] = field(default_factory=list[Step])
    users: list[Step] = field(default_factory=list[Step])
    dropped: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))

    def apply(self, draft: Draft) -> None:
        """Change the network."""
        kept = ~self.dropped
        for user in self.users:
            _without_inputs(draft, user, self.dropped, self.known.get(user.data))
        _without_outputs(draft, self.root, kept)
        for step in self.between:
            if step.kind == DEPTHWISE:
                _without_outputs(draft, step, kept)
            elif step.kind == "RESHAPE":
                shape = (*step.result.shape[:-1], int(kept.sum()))
                step.inputs[1] = draft.numbers(f"{step.result.name}/shape", shape)
                step.fields["new_shape"] = np.asarray(shape, np.int32)
        for wire in self.wires:
            wire.shape = (*wire.shape[:-1], int(kept.sum()))


def _group_of(draft: Draft, root: Step, known: dict[Wire, Range]) -> _Group | None:
    if root.kind not in (CONVOLUTION, DENSE) or not _is_plain(root):
        return None
    group = _Group(root, known)
    waiting = [root.result]
    while waiting:
        wire = waiting.pop()
        group.wires.append(wire)
        users = draft.users(wire)
        if wire in draft.outputs or not users:
            return None
        for step in users:
            if _keeps_channels(step, wire):
                group.between.append(step)
                waiting.append(step.result)
            elif step.kind in (CONVOLUTION, DENSE) and _is_plain(step) and step.data is wire:
                group.users.append(step)
            else:
                return None
    masks = [_droppable(step, known.get(step.data)) for step in group.users]
    group.dropped = np.logical_and.reduce(masks)
    if group.dropped.all():
        group.dropped[0] = False
    return group


def _is_plain(step: Step) -> bool:
    """Whether an operator has constant int8 weights, and a constant 32-bit bias."""
    bias = step.inputs[2] if len(step.inputs) > 2 else None
    fits = bias is not None and bias.values is not None and bias.type is TensorType.INT32
    is_map = len(step.data.shape) in (2, 4) and len(step.result.shape) in (2, 4)
    return fits and is_map and step.data.type is TensorType.INT8 and rows_of(step) is not None


def _keeps_channels(step: Step, wire: Wire) -> bool:
    """Whether an operator makes of each channel one of its own."""
    if step.kind == DEPTHWISE:
        return step.data is wire and wire.channels == step.result.channels and _is_plain(step)
    if step.kind == "RESHAPE":
        flat = (
            wire.channels == step.result.channels
            and wire.shape[:-1].count(1) >= len(wire.shape) - 1
        )
        return flat and step.data is wire and len(step.inputs) > 1
    return step.kind in POOLS


def _droppable(step: Step, known: Range | None) -> Mask:
    """Return which input channels an operator with weights can do without."""
    rows, bias = rows_of(step), step.inputs[2]
    assert rows is not None, "it is plain"
    assert bias is not None, "it is plain"
    assert bias.values is not None, "it is plain"
    unused: Mask = ~np.any(rows, axis=(0, 1))
    if known is None:
        return unused
    zero = int(step.data.zero_points[0])
    constant: Mask = known.low == known.high
    if step.kind == CONVOLUTION and not _is_inside(step):
        constant = constant & (known.low == zero)
    added = bias.values.astype(np.int64) + _constants(rows, constant, known, zero)
    fits = int(np.abs(added).max(initial=0)) < LARGEST_BIAS
    return np.logical_or(unused, constant) if fits else unused


def _is_inside(step: Step) -> bool:
    """Whether a convolution's windows never reach over its input."""
    weights = step.inputs[1]
    assert weights is not None, "it is plain"
    alone = weights.shape[1:3] == (1, 1)
    return alone or int(step.fields["padding"]) == Padding.VALID


def _constants(rows: Array, dropped: Mask, known: Range, zero: int) -> Array:
    """Return what constant channels add to each sum, [O]."""
    values = (known.low - zero)[dropped]
    return rows[:, :, dropped].astype(np.int64).sum(1) @ values.astype(np.int64)


def _without_inputs(draft: Draft, step: Step, dropped: Mask, known: Range | None) -> None:
    """Take input channels away from weights, and put what they add into the bias."""
    rows, weights, bias = rows_of(step), step.inputs[1], step.inputs[2]
    assert rows is not None, "it is plain"
    assert weights is not None, "it is plain"
    assert bias is not None, "it is plain"
    if known is not None:
        of_constants = dropped & (known.low == known.high)
        added = _constants(rows, of_constants, known, int(step.data.zero_points[0]))
        step.inputs[2] = draft.constant(bias, (bias.values + added).astype(np.int32))
    shape = (*weights.shape[:-1], -1) if step.kind == CONVOLUTION else (rows.shape[0], -1)
    step.inputs[1] = draft.constant(
        weights, np.ascontiguousarray(rows[:, :, ~dropped]).reshape(shape)
    )


def _without_outputs(draft: Draft, step: Step, kept: Mask) -> None:
    """Take output channels away from weights, scales and bias."""
    weights, bias = step.inputs[1], step.inputs[2]
    assert weights is not None, "it is plain"
    assert weights.values is not None, "it is plain"
    assert bias is not None, "it is plain"
    assert bias.values is not None, "it is plain"
    axis = 3 if step.kind == DEPTHWISE else 0
    values = np.ascontiguousarray(np.compress(kept, weights.values, axis))
    step.inputs[1] = draft.constant(weights, values, _of(weights.scales, kept), axis)
    step.inputs[2] = draft.constant(bias, bias.values[kept], _of(bias.scales, kept))


def _of(scales: Array, kept: Mask) -> Array | None:
    return scales[kept] if scales.size > 1 else None
