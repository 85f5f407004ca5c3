"""Channels of maps that belong together, from the operator that gives them to those that sum.

Between an operator with weights and the next ones stand those that make of each channel one of its
own: depthwise convolutions, pools, views. All their channels can change their order, or leave,
together: rows of weights on one side, columns on the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.ranges import DENSE, POOLS, rows_of
from mizzen.compiler.rewrites.windows import CONVOLUTION, DEPTHWISE
from mizzen.flatbuffer.tflite import TensorType

Indices = npt.NDArray[np.intp]
"""Of channels, in the order in which they are to be."""


@dataclass(slots=True, eq=False)
class Group:
    """Maps whose channels belong together.

    root     gives the first of them
    wires    the maps
    between  depthwise convolutions, pools and views
    users    operators with weights that take one of the maps
    """

    root: Step
    wires: list[Wire] = field(default_factory=list[Wire])
    between: list[Step] = field(default_factory=list[Step])
    users: list[Step] = field(default_factory=list[Step])

    def take(self, draft: Draft, channels: Indices) -> None:
        """Let the maps have these of their channels, in this order."""
        for user in self.users:
            _take_inputs(draft, user, channels)
        _take_outputs(draft, self.root, channels)
        for step in self.between:
            if step.kind == DEPTHWISE:
                _take_outputs(draft, step, channels)
            elif step.kind == "RESHAPE":
                shape = (*step.result.shape[:-1], channels.size)
                step.inputs[1] = draft.numbers(f"{step.result.name}/shape", shape)
                step.fields["new_shape"] = np.asarray(shape, np.int32)
        for wire in self.wires:
            wire.shape = (*wire.shape[:-1], channels.size)


def groups_of(draft: Draft) -> list[Group]:
    """Return the groups of a network, in the order of what gives them."""
    groups = (_group_of(draft, step) for step in draft.steps)
    return [group for group in groups if group is not None]


def bias_of(step: Step) -> Array:
    """Return the bias of an operator of a group."""
    bias = step.inputs[2]
    assert bias is not None, "it is plain"
    assert bias.values is not None, "it is constant"
    return bias.values


def _group_of(draft: Draft, root: Step) -> Group | None:
    if root.kind not in (CONVOLUTION, DENSE) or not _is_plain(root):
        return None
    group = Group(root)
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
        alone = wire.shape[:-1].count(1) == len(wire.shape) - 1
        return alone and wire.channels == step.result.channels and len(step.inputs) > 1
    return step.kind in POOLS


def _take_inputs(draft: Draft, step: Step, channels: Indices) -> None:
    """Let weights have these input channels."""
    matrix, weights = rows_of(step), step.inputs[1]
    assert matrix is not None, "it is plain"
    assert weights is not None, "it is plain"
    shape = (*weights.shape[:-1], -1) if step.kind == CONVOLUTION else (matrix.shape[0], -1)
    taken = np.ascontiguousarray(matrix[:, :, channels]).reshape(shape)
    step.inputs[1] = draft.constant(weights, taken)


def _take_outputs(draft: Draft, step: Step, channels: Indices) -> None:
    """Let weights, scales and bias have these output channels."""
    weights, bias = step.inputs[1], step.inputs[2]
    assert weights is not None, "it is plain"
    assert weights.values is not None, "it is plain"
    assert bias is not None, "it is plain"
    axis = 3 if step.kind == DEPTHWISE else 0
    values = np.ascontiguousarray(np.take(weights.values, channels, axis))
    step.inputs[1] = draft.constant(weights, values, _of(weights.scales, channels), axis)
    step.inputs[2] = draft.constant(bias, bias_of(step)[channels], _of(bias.scales, channels))


def _of(scales: Array, channels: Indices) -> Array | None:
    return scales[channels] if scales.size > 1 else None
